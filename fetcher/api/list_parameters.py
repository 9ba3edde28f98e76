"""Query parameters of the list (spec rest-api 5.4; no default window: decisions)."""

import base64
import binascii
import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

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
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_METADATA_PATH = re.compile(r"metadata((?:\.[A-Za-z0-9_-]+)+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRules:
    max_limit: int
    max_range_months: int


def connection_query(
    sent: MultiDict[str, str], *, product_name: str | None, rules: ListRules
) -> ConnectionQuery:
    """Raise ``FET-0405`` to ``FET-0409``; an empty value is absent, of several the last counts."""
    last = {name: values[-1] for name, values in sent.lists() if values[-1]}
    limit = _limit(last.get("limit"), rules.max_limit)
    page = _integer("page", last.get("page"), default=1)
    if page > MAX_PAGE:
        raise _invalid("page")
    ascending = _ascending(last.get("sortOrder", "desc"))
    start, end = _window(last.get("startDate"), last.get("endDate"), rules.max_range_months)
    _check_cursor(last.get("cursor"))
    _check_others(last)
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


def _limit(text: str | None, max_limit: int) -> int:
    limit = _integer("limit", text, default=DEFAULT_LIMIT)
    if limit > max_limit:
        raise FetcherError(
            "FET-0406", "Pagination Limit Exceeded", f"limit must be at most {max_limit}"
        )
    return limit


def _integer(name: str, text: str | None, *, default: int) -> int:
    if text is None:
        return default
    if not _INTEGER.fullmatch(text) or int(text) < 1:
        raise _invalid(name)
    return int(text)


def _ascending(text: str) -> bool:
    order = text.lower()
    if order not in ("asc", "desc"):
        raise FetcherError("FET-0407", "Invalid Sort Order", "sortOrder must be asc or desc")
    return order == "asc"


def _window(
    start_text: str | None, end_text: str | None, max_months: int
) -> tuple[datetime | None, datetime | None]:
    """Each date narrows its own side; both together span at most the allowed months."""
    start = _date("startDate", start_text)
    end = _date("endDate", end_text)
    if start is not None and end is not None:
        if start > end:
            raise FetcherError(
                "FET-0409", "Invalid Final Date Error", "endDate must not be before startDate"
            )
        if start == end:
            end = _day_after(end)
        if end > _months_later(start, max_months):
            start = _months_later(end, -max_months)
    return _midnight(start), _midnight(end)


def _date(name: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise FetcherError("FET-0408", "Invalid Date Format Error", f"{name} must be YYYY-MM-DD")


def _day_after(day: date) -> date:
    return day + timedelta(days=1) if day < date.max else day


def _months_later(day: date, months: int) -> date:
    """A day that the month does not have runs over into the next one (spec 5.4)."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if not date.min.year <= year < date.max.year:
        return date.max if months > 0 else date.min
    overflow = max(0, day.day - monthrange(year, month)[1])
    return date(year, month, day.day - overflow) + timedelta(days=overflow)


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
        raise _invalid("cursor")


_JUDGED = frozenset({"limit", "page", "sortOrder", "startDate", "endDate", "cursor"})


def _check_others(last: Mapping[str, str]) -> None:
    for name, value in last.items():
        if name in _JUDGED:
            continue
        shown = name[:MAX_NAME_BYTES]
        if len(name.encode()) > MAX_NAME_BYTES or name.startswith(("$", "_")):
            raise _invalid(shown)
        if len(value.encode()) > MAX_VALUE_BYTES:
            raise _invalid(shown)
        if name.startswith("metadata.") and not _METADATA_PATH.fullmatch(name):
            raise _invalid(shown)


def _metadata(last: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix("metadata."): value
        for name, value in last.items()
        if _METADATA_PATH.fullmatch(name)
    }


def _invalid(name: str) -> FetcherError:
    return FetcherError("FET-0405", "Invalid Query Parameter", f"invalid query parameter {name}")
