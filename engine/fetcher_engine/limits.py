"""What one extraction may ask for and use (spec 7)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from fetcher_engine.errors import EngineError, ErrorCategory

_PATHS = {
    "max_datasources": "maxDatasources",
    "max_tables_per_datasource": "maxTablesPerDatasource",
    "max_fields_per_table": "maxFieldsPerTable",
    "max_concurrency": "maxConcurrency",
    "timeout": "timeout",
    "max_result_bytes": "maxResultBytes",
}
"""Field to JSON name, in the order in which a violation is reported."""

_DEFAULTS: Mapping[str, int | float] = {
    "max_datasources": 10,
    "max_tables_per_datasource": 20,
    "max_fields_per_table": 50,
    "max_concurrency": 4,
    "timeout": 300.0,
    "max_result_bytes": 256 * 1024 * 1024,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Counts, ``timeout`` in seconds, bytes. 0 means "not set", never "unbounded".

    The same type holds an Engine's limits, a plan's, and what a request asks to lower.
    ``connector_hard_limits`` are carried to the host's connectors and never interpreted.
    """

    max_datasources: int = 0
    max_tables_per_datasource: int = 0
    max_fields_per_table: int = 0
    max_concurrency: int = 0
    timeout: float = 0
    max_result_bytes: int = 0
    connector_hard_limits: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, path in _PATHS.items():
            value = getattr(self, name)
            number = (int, float) if name == "timeout" else int
            infinite = isinstance(value, float) and not math.isfinite(value)
            if isinstance(value, bool) or not isinstance(value, number) or infinite:
                raise EngineError(ErrorCategory.VALIDATION, f"limit is not a number: limits.{path}")
        given: object = self.connector_hard_limits
        if not isinstance(given, Mapping):
            text = "limit is not a number: limits.connectorHardLimits"
            raise EngineError(ErrorCategory.VALIDATION, text)
        hard_limits = MappingProxyType(dict(given))
        object.__setattr__(self, "connector_hard_limits", hard_limits)

    @classmethod
    def defaults(cls) -> Self:
        """What an Engine is limited to that was given no limits."""
        return cls().merged_over_defaults()

    @property
    def is_zero(self) -> bool:
        """Whether nothing at all was set."""
        return not self.connector_hard_limits and all(getattr(self, n) <= 0 for n in _PATHS)

    def merged_over_defaults(self) -> Self:
        """Each field that is not set, or not positive, takes its default."""
        return self._with({n: _positive(getattr(self, n)) or _DEFAULTS[n] for n in _PATHS})

    def effective(self, overrides: "Limits | None") -> Self:
        """These limits with a request's lowered ones; its hard limits are ignored.

        Raise ``validation`` naming the first field that would be raised.
        """
        if overrides is None:
            return self
        for name, path in _PATHS.items():
            if getattr(overrides, name) > getattr(self, name) > 0:
                raise EngineError(
                    ErrorCategory.VALIDATION,
                    f"limit override exceeds the configured maximum: limits.{path}",
                )
        return self.clamped_by(overrides)

    def clamped_by(self, other: "Limits") -> Self:
        """The lower of both, field by field; what is not set in one is taken from the other."""
        lowest = {
            name: min(
                filter(None, map(_positive, (getattr(self, name), getattr(other, name)))), default=0
            )
            for name in _PATHS
        }
        return self._with(lowest)

    def to_public_dict(self) -> dict[str, object]:
        """The JSON projection of spec 4.13: what is set."""
        public: dict[str, object] = {
            path: getattr(self, name) for name, path in _PATHS.items() if getattr(self, name) > 0
        }
        if self.connector_hard_limits:
            public["connectorHardLimits"] = dict(sorted(self.connector_hard_limits.items()))
        return public

    def _with(self, values: Mapping[str, int | float]) -> Self:
        return type(self)(
            max_datasources=int(values["max_datasources"]),
            max_tables_per_datasource=int(values["max_tables_per_datasource"]),
            max_fields_per_table=int(values["max_fields_per_table"]),
            max_concurrency=int(values["max_concurrency"]),
            timeout=values["timeout"],
            max_result_bytes=int(values["max_result_bytes"]),
            connector_hard_limits=self.connector_hard_limits,
        )


def _positive(value: float) -> float:
    return max(value, 0)
