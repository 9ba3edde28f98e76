"""Where log records go, and in which form (spec configuration 10.1).

One record a line on standard output: JSON, or a text for people on a terminal.
"""

import json
import logging
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO, cast

import orjson
import structlog
from structlog.processors import CallsiteParameter
from structlog.typing import EventDict, WrappedLogger

from fetcher.domain.trace_context import current_trace
from fetcher.domain.visible_text import visible, visible_in_json
from fetcher.log_repeats import FewOfMany
from fetcher.log_secrets import live_secrets
from fetcher.log_stream import LogStream, flush_logs

PRODUCTION_LIKE = frozenset({"production", "prod", "staging", "stage", "uat"})
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "dpanic": logging.CRITICAL,
    "panic": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}
LINE_BREAKS = str.maketrans({"\r": None, "\n": None, "\0": None})


def configure_logs(*, env_name: str, level: str, encoding: str, has_tenants: bool = False) -> None:
    """Set up structlog for the process; tracebacks never show local variables. With ``has_tenants``
    what an outage makes all of them say is told of a few."""
    threshold = LEVELS[level.strip().lower() or default_level(env_name)]
    ending: list[structlog.typing.Processor]
    if _is_json(env_name, encoding):
        ending = [upper_level, structlog.processors.JSONRenderer(_json_line)]
    else:
        ending = [_for_people(colors=sys.stdout.isatty())]
    structlog.configure(
        processors=[*_chain(FewOfMany() if has_tenants else None), *ending],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", LogStream(sys.stdout))),
        cache_logger_on_first_use=True,
    )
    _tame_libraries()


def send_logs_to_stderr() -> None:
    """For commands: standard output is for what was asked for, a document or JSON."""
    structlog.configure(
        processors=[
            plaintext_once(),
            *_chain(),
            _for_people(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # Looked up for each record: who calls the command may exchange the stream.
        logger_factory=lambda *_: structlog.PrintLogger(cast("TextIO", LogStream(sys.stderr))),
    )
    _tame_libraries()


def mask_uncaught() -> None:
    """What ends the process is told on standard error as Python tells it, but for secrets."""
    sys.excepthook = _tell_uncaught


def _tell_uncaught(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    text = "".join(traceback.format_exception(kind, error, where))
    # The records come first, as they did.
    flush_logs()
    print(
        visible(live_secrets.masked(text)),
        end="",
        file=cast("TextIO", LogStream(sys.stderr)),
        flush=True,
    )


def _for_people(*, colors: bool) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=colors,
        exception_formatter=structlog.dev.plain_traceback,
        event_key="msg",
        timestamp_key="timestamp",
    )


def _chain(left_out: structlog.typing.Processor | None = None) -> list[structlog.typing.Processor]:
    """What every record goes through before it is written."""
    return [
        structlog.contextvars.merge_contextvars,
        *([left_out] if left_out is not None else []),
        with_trace,
        structlog.processors.add_log_level,
        with_time,
        structlog.processors.CallsiteParameterAdder(
            {CallsiteParameter.FILENAME, CallsiteParameter.LINENO}
        ),
        with_caller,
        structlog.processors.EventRenamer("msg"),
        without_control_characters,
        structlog.processors.format_exc_info,
        with_visible_traceback,
        live_secrets.processor,
    ]


def _tame_libraries() -> None:
    """They log through the standard library: only what warns, without their own formatting."""
    handler = _StandardError()
    handler.setFormatter(_MaskingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    for noisy in (
        "aiormq",
        "pamqp",
        "botocore",
        "aiobotocore",
        "hypercorn",
        "quart",
        "opentelemetry",
        "urllib3",
        "trio-asyncio",
    ):
        # Their texts may hold addresses and what a server said; the adapters report failures.
        logging.getLogger(noisy).setLevel(logging.CRITICAL)


def default_level(env_name: str) -> str:
    """What is logged unless LOG_LEVEL says otherwise (spec configuration 2.8)."""
    return "info" if env_name.strip().lower() in PRODUCTION_LIKE else "debug"


def _is_json(env_name: str, encoding: str) -> bool:
    if encoding.strip():
        return encoding.strip().lower() == "json"
    return env_name.strip().lower() in PRODUCTION_LIKE or not sys.stdout.isatty()


class _StandardError(logging.Handler):
    """Looks it up for each record; one that cannot be written is lost, and no library fails for
    having logged it."""

    def emit(self, record: logging.LogRecord) -> None:
        # The library's own call runs on behind it: whatever fails here must end here.
        with suppress(Exception):
            print(self._line_of(record), file=cast("TextIO", LogStream(sys.stderr)), flush=True)

    def _line_of(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # noqa: BLE001 - a template and values that do not belong together
            where = f"{record.filename}:{record.lineno}"
            text = f"{record.levelname} {record.name}: {where}: {type(error).__name__} in its text"
            return visible(live_secrets.masked(text))


class _MaskingFormatter(logging.Formatter):
    """Libraries' records, without the secrets that we hold, and without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(live_secrets.masked(super().format(record)))


def _json_line(event: EventDict, **_: object) -> str:
    """A record is written whatever is in it: what JSON cannot say is told as Python shows it."""
    try:
        line = orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        line = json.dumps(event, default=repr)
    return visible_in_json(line)


def with_trace(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The ids of the span that the record belongs to, where there is a trace."""
    trace = current_trace()
    if trace is not None:
        event["trace_id"] = trace.trace_id
        event["span_id"] = trace.span_id
    return event


def without_control_characters(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A value from outside cannot forge a second record, nor move a terminal's cursor."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = visible(value.translate(LINE_BREAKS))
    return event


def plaintext_once() -> structlog.typing.Processor:
    """Drops what was told already of a dependency without TLS: commands connect more than once."""
    told: set[str] = set()

    def drop(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        if event.get("event") == "plaintext_connection":
            feature = str(event.get("feature"))
            if feature in told:
                raise structlog.DropEvent
            told.add(feature)
        return event

    return drop


def with_visible_traceback(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """An exception's text may come from outside as well; its lines stay lines."""
    text = event.get("exception")
    if isinstance(text, str):
        event["exception"] = visible(text)
    return event


def with_time(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """As ``2026-03-04T10:11:12.345Z``."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    event["timestamp"] = now.replace("+00:00", "Z")
    return event


def with_caller(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event["caller"] = f"{event.pop('filename')}:{event.pop('lineno')}"
    return event


def upper_level(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event["level"] = str(event["level"]).upper().replace("WARNING", "WARN")
    return event
