"""Where the states of executions go."""

from fetcher_engine.context import TenantContext
from fetcher_engine.results import ExecutionState, ExecutionStatus


class MemoryExecutionStore:
    """The latest state of each job."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], ExecutionState] = {}

    async def save_execution(self, tenant: TenantContext, state: ExecutionState) -> None:
        self._states[tenant.tenant_id, state.job_id] = state

    def find(self, tenant: TenantContext, job_id: str) -> ExecutionState | None:
        """The latest state of this job, None where nothing was saved."""
        return self._states.get((tenant.tenant_id, job_id))


class RecordingExecutionStore(MemoryExecutionStore):
    """Also every status in the order in which it came, those that then failed to be saved too."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: list[ExecutionStatus | None] = []
        self.save_error: Exception | None = None

    async def save_execution(self, tenant: TenantContext, state: ExecutionState) -> None:
        self.statuses.append(state.status)
        if self.save_error is not None:
            raise self.save_error
        await super().save_execution(tenant, state)
