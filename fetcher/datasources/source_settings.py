"""What decides how sources are read: the operator's settings, and one request's wishes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fetcher.crypto.sealed_fields import SealedFieldKeys
from fetcher.datasources.addresses import Judge
from fetcher.datasources.threads import PROCESS_THREADS, SourceThreads
from fetcher.domain.jobs import Filters, JobOptions, MappedFields
from fetcher_engine import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """How a source is read once it is connected. Seconds and bytes."""

    statement_seconds: float = 120.0
    lock_seconds: float = 30.0
    max_cell_bytes: int = 16 * 1024 * 1024
    include_views: bool = False
    """Whether views, foreign tables and the like are sources beside tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What the operator decides about sources. ``decrypt`` takes what a record keeps encrypted
    (its password, its TLS key) and the version of the key that it was encrypted with.

    Without ``sqlite_folder`` there are no SQLite sources. ``judge`` is the host guard, None where
    it is off.
    """

    decrypt: Callable[[str, str], str]
    limits: Limits = field(default_factory=Limits.defaults)
    sqlite_folder: Path | None = None
    judge: Judge | None = None
    threads: SourceThreads = PROCESS_THREADS
    include_views: bool = False
    sqlserver_trusts_all: bool = False
    """Whether mode ``true`` of SQL Server without a CA verifies nothing, as the reference does."""
    keeps_default_schema: bool = False
    """Whether bare names lie in their type's default schema, whatever the connection's own is."""
    max_cell_bytes: int = 16 * 1024 * 1024
    lock_timeout_seconds: float = 30.0
    query_timeout_seconds: float = 120.0
    sealed_field_keys: SealedFieldKeys = field(default_factory=SealedFieldKeys)
    """Those of ``plugin_crm``."""

    @property
    def reading(self) -> ReadSettings:
        return ReadSettings(
            statement_seconds=self.query_timeout_seconds,
            lock_seconds=self.lock_timeout_seconds,
            max_cell_bytes=self.max_cell_bytes,
            include_views=self.include_views,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestScope:
    """What one request asks for, and how it wants values written."""

    options: JobOptions
    requested: MappedFields | None
    filters: Filters = field(default_factory=dict, repr=False)

    def tables(self, config_name: str) -> tuple[str, ...] | None:
        """The tables as they were requested; None where a request names none."""
        if self.requested is None or config_name not in self.requested:
            return None
        return tuple(self.requested[config_name])

    def fields(self, config_name: str) -> Mapping[str, Sequence[str]] | None:
        """By table, the fields to read and those to filter by; None as for :meth:`tables`."""
        if self.requested is None or config_name not in self.requested:
            return None
        filtered = self.filters.get(config_name, {})
        return {
            table: tuple(dict.fromkeys((*fields, *filtered.get(table, ()))))
            for table, fields in self.requested[config_name].items()
        }
