"""Where log records go, and in which form (spec configuration 10.1).

One record a line on standard error: JSON in production-like environments, a console text elsewhere.
"""

import json
import logging
import sys
from typing import TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger

JSON_ENVIRONMENTS = frozenset({"production", "prod", "staging", "stage", "uat"})
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "dpanic": logging.CRITICAL,
    "panic": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}
CONTROL = str.maketrans({"\r": None, "\n": None, "\0": None})


def configure_logs(*, env_name: str, level: str, encoding: str) -> None:
    """Set up structlog for the process; tracebacks never show local variables."""
    environment = env_name.strip().lower()
    as_json = encoding.strip().lower() == "json" or (
        not encoding and environment in JSON_ENVIRONMENTS
    )
    threshold = LEVELS.get(level.strip().lower(), logging.INFO)
    renderer: structlog.typing.Processor
    if as_json:
        renderer = structlog.processors.JSONRenderer(_json_line)
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,
            event_key="msg",
            timestamp_key="timestamp",
        )
    chain: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        structlog.processors.EventRenamer("msg"),
        without_line_breaks,
    ]
    if as_json:
        chain += [upper_level, structlog.processors.format_exc_info]
    structlog.configure(
        processors=[*chain, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _LogStream(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard library: only what warns, without their own formatting.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    for noisy in (
        "aiormq",
        "pamqp",
        "botocore",
        "aiobotocore",
        "hypercorn",
        "quart",
        "trio-asyncio",
    ):
        # Their texts may hold addresses and what a server said; the adapters report failures.
        logging.getLogger(noisy).setLevel(logging.CRITICAL)


def send_logs_to_stderr() -> None:
    """For commands: standard output is for what was asked for, a document or JSON."""
    # Looked up for each record: who calls the command may exchange the stream.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


class _LogStream:
    """Standard error as far as printing needs it. A full disk, or a reader that has gone, loses
    records but never fails whoever wrote one; how many is told as soon as it can be."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0
        self._is_cut = False

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except OSError:
            self._is_cut = True
        return len(text)

    def flush(self) -> None:
        """Called once a record."""
        try:
            self._stream.flush()
            if self._lost and not self._is_cut:
                self._stream.write(
                    f'{{"level":"WARN","msg":"log_records_lost","n":{self._lost}}}\n'
                )
                self._stream.flush()
                self._lost = 0
        except OSError:
            self._is_cut = True
        self._lost += self._is_cut
        self._is_cut = False


def _json_line(event: EventDict, **_: object) -> str:
    """A record is written whatever is in it: what JSON cannot say is told as Python shows it."""
    try:
        return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        return json.dumps(event, default=repr)


def without_line_breaks(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A value from outside cannot forge a second record."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = value.translate(CONTROL)
    return event


def upper_level(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event["level"] = str(event["level"]).upper().replace("WARNING", "WARN")
    return event
