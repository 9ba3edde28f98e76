"""Query parameters of lists (spec rest-api 5.4; no default window: decisions)."""

import base64
import binascii
import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta

from werkzeug.datastructures import MultiDict

from fetcher.domain.connections import ConnectionQuery
from fetcher.domain.errors import FetcherError
from fetcher.domain.json_text import JsonTextError, parse

DEFAULT_LIMIT = 10
MAX_PAGE = 10**15
"""Beyond this the number of skipped records does not fit into 64 bits."""
MAX_NAME_BYTES = 64
MAX_VALUE_BYTES = 256

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_EARLIEST = datetime(MINYEAR, 1, 1, tzinfo=UTC)
_LATEST = datetime(MAXYEAR, 12, 31, tzinfo=UTC)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_METADATA_PATH = re.compile(r"metadata((?:\.[A-Za-z0-9_-]+)+)", re.ASCII)


def truth_of(sent: MultiDict[str, str], name: str, *, default: bool) -> bool:
    """A parameter that says ``true`` or ``false``. Raise ``FET-0405`` for anything else."""
    text = last_values(sent).get(name)
    if text is None:
        return default
    if text not in ("true", "false"):
        raise invalid_parameter(name, "must be true or false")
    return text == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRules:
    max_limit: int
    max_range_months: int


def connection_query(
    sent: MultiDict[str, str], *, product_name: str | None, rules: ListRules
) -> ConnectionQuery:
    """Raise ``FET-0405`` to ``FET-0409``; an empty value is absent, of several the last counts."""
    last = last_values(sent)
    limit = page_limit(last.get("limit"), rules.max_limit)
    page = positive_integer("page", last.get("page"), default=1)
    if page > MAX_PAGE:
        raise invalid_parameter("page")
    ascending = is_ascending(last.get("sortOrder", "desc"))
    start, end = _window(last.get("startDate"), last.get("endDate"), rules.max_range_months)
    _check_cursor(last.get("cursor"))
    check_other_names(last, judged=_JUDGED)
    return ConnectionQuery(
        product_name=product_name,
        type=last["type"].upper() if "type" in last else None,
        host=last.get("host"),
        database_name=last.get("databaseName"),
        created_from=start,
        created_until=end,
        metadata=_metadata(last),
        ascending=ascending,
        page=page,
        limit=limit,
    )


def last_values(sent: MultiDict[str, str]) -> dict[str, str]:
    """Each name's last value; an empty one is absent."""
    return {name: values[-1] for name, values in sent.lists() if values[-1]}


def page_limit(text: str | None, max_limit: int) -> int:
    """Raise ``FET-0405`` or ``FET-0406``."""
    limit = positive_integer("limit", text, default=DEFAULT_LIMIT)
    if limit > max_limit:
        raise FetcherError(
            "FET-0406", "Pagination Limit Exceeded", f"limit must be at most {max_limit}"
        )
    return limit


def positive_integer(name: str, text: str | None, *, default: int) -> int:
    if text is None:
        return default
    if not _INTEGER.fullmatch(text) or int(text) < 1:
        raise invalid_parameter(name, "must be a whole number of at least 1")
    return int(text)


def is_ascending(text: str) -> bool:
    order = text.lower()
    if order not in ("asc", "desc"):
        raise FetcherError("FET-0407", "Invalid Sort Order", "sortOrder must be asc or desc")
    return order == "asc"


def _window(
    start_text: str | None, end_text: str | None, max_months: int
) -> tuple[datetime | None, datetime | None]:
    start = _date("startDate", start_text)
    end = _date("endDate", end_text)
    if start is not None and start == end:
        end = _day_after(start)
    return bounded_window(_midnight(start), _midnight(end), max_months)


def bounded_window(
    start: datetime | None, end: datetime | None, max_months: int
) -> tuple[datetime | None, datetime | None]:
    """Each time narrows its own side; both together span at most the allowed months.

    Raise ``FET-0409``.
    """
    refuse_reversed_window(start, end)
    if start is not None and end is not None and end > _months_later(start, max_months):
        start = _months_later(end, -max_months)
    return start, end


def refuse_reversed_window(start: datetime | None, end: datetime | None) -> None:
    """Raise ``FET-0409``."""
    if start is not None and end is not None and start > end:
        raise FetcherError(
            "FET-0409", "Invalid Final Date Error", "endDate must not be before startDate"
        )


def _date(name: str, text: str | None) -> date | None:
    if text is None:
        return None
    day = calendar_date(text)
    if day is None:
        raise FetcherError("FET-0408", "Invalid Date Format Error", f"{name} must be YYYY-MM-DD")
    return day


def calendar_date(text: str) -> date | None:
    """A ``YYYY-MM-DD`` that exists, else None."""
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _day_after(day: date) -> date:
    return day + timedelta(days=1) if day < date.max else day


def _months_later(moment: datetime, months: int) -> datetime:
    """A day that the month does not have runs over into the next one (spec 5.4)."""
    index = moment.year * 12 + moment.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if not MINYEAR <= year < MAXYEAR:
        return _LATEST if months > 0 else _EARLIEST
    overflow = max(0, moment.day - monthrange(year, month)[1])
    shifted = moment.replace(year=year, month=month, day=moment.day - overflow)
    return shifted + timedelta(days=overflow)


def _midnight(day: date | None) -> datetime | None:
    return datetime.combine(day, time.min, UTC) if day is not None else None


def _check_cursor(text: str | None) -> None:
    """A cursor has no effect, but must be one."""
    if text is None:
        return
    try:
        value = parse(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, JsonTextError):
        value = None
    if not (
        isinstance(value, Mapping)
        and isinstance(value.get("id"), str)
        and isinstance(value.get("points_next"), bool)
    ):
        raise invalid_parameter("cursor")


_JUDGED = frozenset({"limit", "page", "sortOrder", "startDate", "endDate", "cursor"})


def check_other_names(last: Mapping[str, str], *, judged: frozenset[str]) -> None:
    """Raise ``FET-0405`` for names and values that are too long or could be operators."""
    for name, value in last.items():
        if name in judged:
            continue
        shown = name[:MAX_NAME_BYTES]
        if len(name.encode()) > MAX_NAME_BYTES or name.startswith(("$", "_")):
            raise invalid_parameter(shown)
        if len(value.encode()) > MAX_VALUE_BYTES:
            raise invalid_parameter(shown)
        if name.startswith("metadata.") and not _METADATA_PATH.fullmatch(name):
            raise invalid_parameter(shown)


def _metadata(last: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix("metadata."): value
        for name, value in last.items()
        if _METADATA_PATH.fullmatch(name)
    }


def invalid_parameter(name: str, needs: str = "") -> FetcherError:
    """``needs``: what it must be, where that can be said in a few words."""
    message = f"invalid query parameter {name}" + (f": {needs}" if needs else "")
    return FetcherError("FET-0405", "Invalid Query Parameter", message)
