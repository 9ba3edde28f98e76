"""How large a request may be beyond the limits of what it extracts (spec 7)."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import ExtractionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCeilings:
    """Bounds for hosts that pass on what strangers send; 0 is not checked, the default.

    ``max_filter_values`` counts the values of all operators of one field, ``max_filter_fields`` the
    filtered fields of one source, ``max_name_length`` the characters of a config, table or field
    name, ``max_metadata_keys`` the members of ``metadata``. Negative, boolean and other values that
    are no count raise ``validation``.
    """

    max_filter_values: int = 0
    max_filter_fields: int = 0
    max_name_length: int = 0
    max_metadata_keys: int = 0

    def __post_init__(self) -> None:
        for name, path in _PATHS.items():
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise EngineError(ErrorCategory.VALIDATION, f"limit is not a number: {path}")

    @classmethod
    def recommended(cls) -> Self:
        """1000 values a field, 1000 filtered fields a source, 512 characters, 64 members."""
        return cls(
            max_filter_values=1000,
            max_filter_fields=1000,
            max_name_length=512,
            max_metadata_keys=64,
        )

    def require_within(self, request: ExtractionRequest) -> None:
        """Raise ``validation`` that names the first ceiling which the request exceeds."""
        for name, size, source, table in _sizes(request):
            if size > getattr(self, name) > 0:
                text = f"extraction request exceeds the configured maximum: {_PATHS[name]}"
                raise EngineError(ErrorCategory.VALIDATION, text, source=source, table=table)


_PATHS = {
    "max_filter_values": "limits.maxFilterValues",
    "max_filter_fields": "limits.maxFilterFields",
    "max_name_length": "limits.maxNameLength",
    "max_metadata_keys": "limits.maxMetadataKeys",
}

_Size = tuple[str, int, str | None, str | None]
"""A ceiling's field, what counts against it, and the source and table where that stands."""


def _sizes(request: ExtractionRequest) -> Iterator[_Size]:
    yield "max_metadata_keys", len(request.metadata), None, None
    # names first: a name that is too long must not be shown as the place of something else
    for tables in (request.mapped_fields, request.filters):
        for config, fields_by_table in tables.items():
            yield "max_name_length", len(config), None, None
            for table, fields in fields_by_table.items():
                yield "max_name_length", len(table), config, None
                yield "max_name_length", max(map(len, fields), default=0), config, table
    for config, conditions_by_table in request.filters.items():
        field_count = sum(map(len, conditions_by_table.values()))
        yield "max_filter_fields", field_count, config, None
        for table, conditions in conditions_by_table.items():
            values = max(map(_value_count, conditions.values()), default=0)
            yield "max_filter_values", values, config, table


def _value_count(condition: object) -> int:
    """How many values a condition holds, at whatever depth."""
    count, waiting = 0, [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, Collection) and not isinstance(part, str | bytes | bytearray):
            waiting += part
        else:
            count += 1
    return count
