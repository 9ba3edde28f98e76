"""What is asked for, and the plan that comes of it (spec 4.9, 4.10)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.limits import Limits

V = TypeVar("V")


def _malformed(what: str, source: str | None = None, table: str | None = None) -> EngineError:
    text = f"extraction request has malformed {what}"
    return EngineError(ErrorCategory.VALIDATION, text, source=source, table=table)


def _frozen(mapping: Mapping[str, V]) -> Mapping[str, V]:
    return MappingProxyType(dict(mapping))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRequest:
    """Fields by config name and table, with filters, opaque metadata and lowered limits.

    ``mapped_fields`` and ``filters`` are copied; construction raises ``validation`` when their
    shape is wrong (a text where a list of fields belongs, anything but a mapping of table to field
    to condition as filters, a condition that holds nothing), so that no filter is ever dropped. A
    condition is the host's own; the Engine hands it to the connector as it is.
    """

    mapped_fields: Mapping[str, Mapping[str, Sequence[str]]]
    filters: Mapping[str, Mapping[str, Mapping[str, object]]] = field(
        default_factory=dict, repr=False
    )
    metadata: Mapping[str, object] = field(default_factory=dict)
    overrides: Limits | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapped_fields", _frozen_fields(self.mapped_fields))
        object.__setattr__(self, "filters", _frozen_filters(self.filters))
        if not isinstance(self.metadata, Mapping):
            raise _malformed("metadata")
        if not isinstance(self.overrides, Limits | None):
            raise _malformed("overrides")
        object.__setattr__(self, "metadata", _frozen(self.metadata))

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection, filters included: they hold the caller's own values."""
        public: dict[str, object] = {
            "mappedFields": {
                config: {table: list(fields) for table, fields in tables.items()}
                for config, tables in self.mapped_fields.items()
            }
        }
        if self.filters:
            public["filters"] = {
                config: {table: dict(conditions) for table, conditions in tables.items()}
                for config, tables in self.filters.items()
            }
        if self.metadata:
            public["metadata"] = dict(self.metadata)
        if self.overrides is not None:
            public["overrides"] = self.overrides.to_public_dict()
        return public


def _frozen_fields(
    mapped_fields: Mapping[str, Mapping[str, Sequence[str]]],
) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    if not _has_text_keys(mapped_fields):
        raise _malformed("fields")
    for config, tables in mapped_fields.items():
        if not _has_text_keys(tables):
            raise _malformed("fields", config)
        for table, fields in tables.items():
            if not _is_list(fields) or not all(isinstance(name, str) for name in fields):
                raise _malformed("fields", config, table)
    return _frozen(
        {
            config: _frozen({table: tuple(fields) for table, fields in tables.items()})
            for config, tables in mapped_fields.items()
        }
    )


def _frozen_filters(
    filters: Mapping[str, Mapping[str, Mapping[str, object]]],
) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    if not _has_text_keys(filters):
        raise _malformed("filters")
    for config, tables in filters.items():
        if not _has_text_keys(tables):
            raise _malformed("filters", config)
        for table, conditions in tables.items():
            if not _has_text_keys(conditions) or any(map(_is_hollow, conditions.values())):
                raise _malformed("filters", config, table)
    return _frozen(
        {
            config: _frozen({table: _frozen(conditions) for table, conditions in tables.items()})
            for config, tables in filters.items()
        }
    )


def _has_text_keys(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _is_hollow(condition: object) -> bool:
    """Whether a condition says nothing: it, or the list of one of its operators, is empty."""
    if condition is None:
        return True
    if isinstance(condition, Mapping):
        return not condition or any(map(_is_empty, condition.values()))
    return _is_empty(condition)


def _is_empty(values: object) -> bool:
    return isinstance(values, Collection) and not isinstance(values, str | bytes) and not values


def _require_parts(steps: object, metadata: object, limits: object, mode: object) -> None:
    sound = isinstance(steps, Sequence) and all(isinstance(step, PlanStep) for step in steps)
    known = isinstance(mode, str) and mode in frozenset(ExecutionMode)
    if not (sound and known and isinstance(metadata, Mapping) and isinstance(limits, Limits)):
        raise _invalid_plan()


def _invalid_plan() -> EngineError:
    return EngineError(ErrorCategory.VALIDATION, "extraction plan is invalid")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One source's part: tables and fields in byte order, which is how they are written.

    ``estimated_rows`` are the source's own guesses by table, where it makes them: for whoever shows
    a plan. They are no part of what is asked for: neither of equality nor of the projection. Raise
    ``validation`` for what is no such part.
    """

    ordinal: int
    config_name: str
    fields: Mapping[str, tuple[str, ...]]
    filters: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    estimated_rows: Mapping[str, int] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        parts = all(map(_has_text_keys, (self.fields, self.filters, self.estimated_rows)))
        if not parts or (type(self.config_name), type(self.ordinal)) != (str, int):
            raise _invalid_plan()
        lists, mappings = self.fields.values(), self.filters.values()
        if not all(map(_is_list, lists)) or not all(map(_has_text_keys, mappings)):
            raise _invalid_plan()
        in_order = {table: tuple(self.fields[table]) for table in sorted(self.fields)}
        object.__setattr__(self, "fields", MappingProxyType(in_order))
        filters = {table: _frozen(self.filters[table]) for table in sorted(self.filters)}
        object.__setattr__(self, "filters", MappingProxyType(filters))
        object.__setattr__(self, "estimated_rows", _frozen(self.estimated_rows))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, in byte order."""
        return tuple(self.fields)

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection, filters included."""
        public: dict[str, object] = {
            "ordinal": self.ordinal,
            "configName": self.config_name,
            "tables": list(self.tables),
            "fields": {table: list(names) for table, names in self.fields.items()},
        }
        if self.filters:
            public["filters"] = {table: dict(leaves) for table, leaves in self.filters.items()}
        return public


class ExecutionMode(StrEnum):
    """Where :meth:`Engine.execute_extraction` puts the result."""

    AUTO = ""
    """Into the sink where the host has one, else into memory."""
    DIRECT = "direct"
    STORE = "store"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionPlan:
    """A request that was found to fit its sources; free of secrets, independent of the request.

    Equal requests give equal plans. A host may set ``request_id`` and ``mode`` on a copy before it
    executes (``dataclasses.replace``). Raise ``validation`` for a mode that is none.
    """

    tenant_id: str
    steps: tuple[PlanStep, ...]
    limits: Limits
    request_id: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    mode: ExecutionMode = ExecutionMode.AUTO

    def __post_init__(self) -> None:
        _require_parts(self.steps, self.metadata, self.limits, self.mode)
        object.__setattr__(self, "steps", tuple(self.steps))
        object.__setattr__(self, "metadata", _frozen(self.metadata))
        object.__setattr__(self, "mode", ExecutionMode(self.mode))

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection, for a host that keeps plans."""
        public: dict[str, object] = {"tenantId": self.tenant_id}
        if self.request_id:
            public["requestId"] = self.request_id
        public["steps"] = [step.to_public_dict() for step in self.steps]
        if self.metadata:
            public["metadata"] = dict(self.metadata)
        public["limits"] = self.limits.to_public_dict()
        if self.mode:
            public["mode"] = str(self.mode)
        return public
