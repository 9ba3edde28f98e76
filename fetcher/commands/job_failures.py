"""Why an attempt at a job failed, as its record and its event tell it."""

from collections.abc import Sequence

from fetcher.commands.source_breakers import SourceWait
from fetcher.compat import plugin_crm
from fetcher.domain.connections import Connection
from fetcher.domain.errors import PortError
from fetcher.domain.internal_sources import InternalSourceMissing
from fetcher.domain.jobs import FailureFacts
from fetcher.domain.terminal_event import failure_message
from fetcher_engine import EngineError


def failure_of_unconfigured(missing: InternalSourceMissing) -> FailureFacts:
    """What a job says whose internal data source this process was not given."""
    name = missing.config_name
    code = plugin_crm.NOT_RESOLVED_CODE if plugin_crm.is_crm(name) else "not_found"
    return FailureFacts(message=missing.message, code=code, source=name)


def waiting_reason(wait: SourceWait) -> str:
    return f"connection {wait.config_name} is down"


def failure_of_wait(wait: SourceWait) -> FailureFacts:
    """What a job says that has waited too long for a connection to come back."""
    met = failure_message(config=None, stage=wait.down.stage, reason=wait.down.reason)
    return FailureFacts(
        message=f"{waiting_reason(wait)}: {met}",
        code="connection_down",
        source=wait.config_name,
        stage=wait.down.stage,
        reason=wait.down.reason,
    )


def failure_of(
    error: EngineError | PortError, connections: Sequence[Connection] = ()
) -> FailureFacts:
    """The safe parts of a failure (decisions, 'Failure text').

    ``connections`` are the job's: one kind of source has codes of its own.
    """
    if isinstance(error, PortError):
        return FailureFacts(
            message="saving external data to storage failed", code=f"storage_{error.code}"
        )
    stage = error.stage.value if error.stage else None
    return FailureFacts(
        message=words_of(error),
        code=_own_code(error, connections) or error.category.value,
        source=error.source,
        stage=stage,
        reason=error.reason,
    )


def _own_code(error: EngineError, connections: Sequence[Connection]) -> str | None:
    failed = (c for c in connections if c.config_name == error.source)
    if any(plugin_crm.is_crm_source(c.config_name, c.type) for c in failed):
        return plugin_crm.failure_code(error)
    return None


def words_of(error: EngineError) -> str:
    ambiguous = {
        ".".join(name for name in (failure.table, failure.field) if name): failure.candidates
        for failure in error.failures
        if failure.candidates
    }
    unmet = [failure for failure in error.failures if not failure.candidates]
    missing_tables = [f.table for f in unmet if f.type == "table_not_found" and f.table]
    missing_fields: dict[str, list[str]] = {}
    for failure in unmet:
        if failure.table and failure.field:
            missing_fields.setdefault(failure.table, []).append(failure.field)
    return failure_message(
        config=error.source,
        stage=error.stage.value if error.stage else None,
        reason=error.reason or error.message,
        place=".".join(name for name in (error.table, error.column) if name),
        missing_tables=missing_tables,
        missing_fields=missing_fields,
        ambiguous=ambiguous,
    )
