"""Declares the broker's objects at the start (``RABBITMQ_DECLARE_TOPOLOGY``)."""

import structlog
import trio

from fetcher.domain.backoff import full_jitter
from fetcher.domain.errors import PortError
from fetcher.ports import DeclareTopology

log = structlog.get_logger(__name__)


class TopologyDeclarer:
    """Once, as soon as the broker is there; ends then. What differs is told and left as it is."""

    name = "topology_declarer"

    def __init__(self, *, declare: DeclareTopology) -> None:
        self._declare = declare

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        tries = 0
        while not await self._try():
            await trio.sleep(full_jitter(tries, base_seconds=0.5, cap_seconds=30.0))
            tries += 1

    async def _try(self) -> bool:
        try:
            findings = await self._declare()
        except PortError as failure:
            log.warning("topology_not_declared", code=failure.code, why=str(failure))
            return False
        for found in findings:
            facts = {"kind": found.kind, "object": found.name, "details": list(found.details)}
            if found.status.is_failure:
                log.error("topology_differs", status=found.status.value, **facts)
            elif found.details:
                log.warning("topology_accepted", status=found.status.value, **facts)
        log.info("topology_declared", objects=len(findings))
        return True
