"""Query parameters of the list of jobs: the rules of other lists, with a cursor for a page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from werkzeug.datastructures import MultiDict

from fetcher.api.list_cursors import CURSOR_SCHEMA, parse_place, place_text
from fetcher.api.list_parameters import (
    DEFAULT_LIMIT,
    MAX_VALUE_BYTES,
    ListRules,
    calendar_date,
    check_other_names,
    invalid_parameter,
    is_ascending,
    last_values,
    page_limit,
    refuse_reversed_window,
)
from fetcher.api.routing import Parameter, query_parameter
from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import JobCursor, JobQuery
from fetcher.domain.jobs import JobStatus

DAY = timedelta(days=1)

_LATEST = datetime(9999, 12, 31, tzinfo=UTC)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_JUDGED = frozenset({"limit", "sortOrder", "startDate", "endDate", "cursor", "status"})


@dataclass(frozen=True, slots=True)
class JobListRequest:
    query: JobQuery
    names_two_products: bool
    """Header and ``source`` differ: there is nothing to be found."""


def list_parameters(max_limit: int) -> Sequence[Parameter]:
    """What the API document says of them."""
    status = f"(?:{'|'.join(JobStatus)})"
    time = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
    name = {"type": "string", "maxLength": MAX_VALUE_BYTES}
    return tuple(
        query_parameter(name, description, **schema)
        for name, description, schema in (
            (
                "status",
                "One or several, with commas between them",
                {"type": "string", "pattern": f"^{status}(?:,{status})*$"},
            ),
            ("source", "The product that asked (`metadata.source`), in any case", name),
            ("connection", "Only jobs that read from this config name", name),
            ("startDate", "Created then or later: a date or an RFC 3339 time", time),
            ("endDate", "Created before then: a date or an RFC 3339 time", time),
            ("sortOrder", "By time of creation", {"enum": ["asc", "desc"], "default": "desc"}),
            (
                "limit",
                "Jobs a page",
                {"type": "integer", "minimum": 1, "maximum": max_limit, "default": DEFAULT_LIMIT},
            ),
            (
                "cursor",
                "`nextCursor` of the page before",
                CURSOR_SCHEMA,
            ),
        )
    )


def job_list_request(
    sent: MultiDict[str, str], *, product_name: str | None, rules: ListRules
) -> JobListRequest:
    """Raise ``FET-0405`` to ``FET-0409``; an empty value is absent, of several the last counts, but
    of ``status`` all do.
    """
    last = last_values(sent)
    limit = page_limit(last.get("limit"), rules.max_limit)
    ascending = is_ascending(last.get("sortOrder", "desc"))
    start, end = _window(last.get("startDate"), last.get("endDate"))
    after = parse_cursor(last["cursor"]) if "cursor" in last else None
    statuses = frozenset(
        _status(word) for text in sent.getlist("status") for word in text.split(",") if word
    )
    check_other_names(last, judged=_JUDGED)
    source = _text(last, "source")
    if source is not None:
        source = source.strip().lower()
    query = JobQuery(
        statuses=statuses,
        product_name=product_name if source is None else source,
        config_name=_text(last, "connection"),
        created_from=start,
        created_until=end,
        ascending=ascending,
        after=after,
        limit=limit,
    )
    return JobListRequest(query, source is not None and product_name not in (None, source))


def cursor_text(cursor: JobCursor) -> str:
    return place_text(cursor.created_at, cursor.job_id)


def parse_cursor(text: str) -> JobCursor:
    """Raise ``FET-0405`` for what no answer gave."""
    created_at, job_id = parse_place(text)
    return JobCursor(created_at=created_at, job_id=JobId(job_id))


def _status(word: str) -> JobStatus:
    name = word.strip().lower()
    if name not in frozenset(JobStatus):
        raise invalid_parameter("status", f"must be of {', '.join(JobStatus)}")
    return JobStatus(name)


def _text(last: dict[str, str], name: str) -> str | None:
    text = last.get(name)
    if text is not None and "\0" in text:
        raise invalid_parameter(name)
    return text


def _window(
    start_text: str | None, end_text: str | None
) -> tuple[datetime | None, datetime | None]:
    start = _time("startDate", start_text)
    end = _time("endDate", end_text)
    if (
        start is not None
        and start == end
        and start_text == end_text
        and len(start_text or "") == 10
    ):
        end = start + DAY if start < _LATEST else start
    refuse_reversed_window(start, end)
    return start, end


def _time(name: str, text: str | None) -> datetime | None:
    """The midnight that a date begins with, or an instant."""
    if text is None:
        return None
    day = calendar_date(text)
    if day is not None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    try:
        if _INSTANT.fullmatch(text):
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise FetcherError(
        "FET-0408",
        "Invalid Date Format Error",
        f"{name} must be YYYY-MM-DD, or a time with its zone (RFC 3339)",
    )
