"""The states of one execution, told to the host's store (spec 10.6)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from fetcher_engine.concurrency import Concurrency
from fetcher_engine.context import TenantContext
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import if_it_can, unexpected
from fetcher_engine.ports import ExecutionStore
from fetcher_engine.results import ExecutionState, ExecutionStatus

_SAVE_SECONDS = 5.0
"""How long a terminal state may take; it is written also when the run's own time is up."""


class ExecutionStates:
    """Best effort: a store's errors are ignored. Without a store or a job id nothing is written."""

    def __init__(
        self,
        *,
        store: ExecutionStore | None,
        concurrency: Concurrency,
        tenant: TenantContext,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._concurrency = concurrency
        self._tenant = tenant
        self._now = now
        self._state = ExecutionState(job_id=tenant.request_id)

    async def running(self) -> None:
        """Raise ``internal`` for a clock that fails."""
        started_at = self._time()
        self._state = replace(self._state, status=ExecutionStatus.RUNNING, started_at=started_at)
        await if_it_can(self._save)  # a state that is not written stops no execution

    async def completed(self) -> tuple[ExecutionState, datetime]:
        """The state of the result, and its time. Raise ``internal`` for a clock that fails."""
        completed_at = self._time()
        return await self._end(ExecutionStatus.COMPLETED, completed_at), completed_at

    async def failed(self, error: EngineError) -> None:
        canceled = error.category is ErrorCategory.CANCELED
        status = ExecutionStatus.CANCELED if canceled else ExecutionStatus.FAILED
        await self._end(status, self._time_if_any(), error.message)

    async def canceled(self) -> None:
        await self._end(ExecutionStatus.CANCELED, self._time_if_any(), "execution canceled")

    async def _end(
        self, status: ExecutionStatus, at: datetime | None, message: str = ""
    ) -> ExecutionState:
        self._state = replace(self._state, status=status, completed_at=at, failure_message=message)
        await self._concurrency.run_shielded(_SAVE_SECONDS, self._save)
        return self._state

    def _time(self) -> datetime:
        with suppress(Exception):
            return self._now()
        raise unexpected()

    def _time_if_any(self) -> datetime | None:
        # a clock that fails must hide neither the failure nor the loop's cancellation
        with suppress(EngineError):
            return self._time()
        return None

    async def _save(self) -> None:
        if self._store is not None and self._state.job_id:
            await self._store.save_execution(self._tenant, self._state)
