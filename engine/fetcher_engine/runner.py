"""Executes a plan: steps at once, their bytes in plan order, memory bounded (spec 10, design 5)."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

from fetcher_engine.concurrency import Concurrency, Handoff, HandoffClosed, Job
from fetcher_engine.context import TenantContext
from fetcher_engine.document import EMPTY_DOCUMENT, ByteBudget, frames_of, skeleton_bytes
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.extraction import ExtractionPlan
from fetcher_engine.failures import Checkpoint
from fetcher_engine.limits import Limits
from fetcher_engine.sources import Sources
from fetcher_engine.step_reading import Progress, StepReader

Write: TypeAlias = Callable[[bytes | memoryview], Awaitable[None]]

_READ_AHEAD_BYTES = 4 * 1024 * 1024
"""What a step ahead of its turn reads before it waits (design section 5)."""


class DocumentWriter:
    """Counts and digests exactly the bytes that the host takes."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    async def write(self, piece: bytes) -> None:
        """Raise ``unavailable`` when the host's function fails, with its exception to unwrap."""
        try:
            await self._write(piece)
        except EngineError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to the host's function
            text = "failed to persist extraction result"
            failure = EngineError(ErrorCategory.UNAVAILABLE, text, error)
        else:
            self._digest.update(piece)
            self.size_bytes += len(piece)
            return
        raise failure

    def sha256(self) -> str:
        return self._digest.hexdigest()


class Runner:
    """Runs plans for one operation."""

    def __init__(
        self, *, sources: Sources, concurrency: Concurrency, checkpoint: Checkpoint
    ) -> None:
        self._sources = sources
        self._concurrency = concurrency
        self._checkpoint = checkpoint

    async def run(
        self,
        plan: ExtractionPlan,
        limits: Limits,
        writer: DocumentWriter,
        progress: Progress | None,
    ) -> dict[str, int]:
        """Write the whole document; the rows of each config name.

        The first failure stops all steps and is raised once every connector is closed; what was
        written until then is worthless to the host.
        """
        await self._checkpoint()
        budget = ByteBudget(limit=limits.max_result_bytes, skeleton=skeleton_bytes(plan.steps))
        tenant = TenantContext(plan.tenant_id, plan.request_id)
        readers: list[StepReader] = []
        handoffs: list[Handoff[bytes]] = []
        for step, frame in zip(plan.steps, frames_of(plan.steps), strict=True):
            handoff: Handoff[bytes] | None = self._concurrency.handoff(_READ_AHEAD_BYTES)
            if handoff is not None:
                handoffs.append(handoff)
            reader = StepReader(
                step=step,
                frame=frame,
                budget=budget,
                sources=self._sources,
                checkpoint=self._checkpoint,
                emit=writer.write if handoff is None else partial(_send, handoff),
                on_end=_nothing if handoff is None else handoff.close,
                progress=progress,
            )
            readers.append(reader)
        jobs: list[Job] = [partial(reader.run, tenant) for reader in readers]
        if handoffs:
            jobs.insert(0, partial(_drain, handoffs, writer))
        # the writer is no step: it takes no place from them
        await self._concurrency.run_ordered(jobs, limits.max_concurrency + bool(handoffs))
        await self._checkpoint()
        if not plan.steps:
            await writer.write(EMPTY_DOCUMENT)
        counts = (reader.row_count for reader in readers)
        return {step.config_name: n for step, n in zip(plan.steps, counts, strict=True)}


async def _send(handoff: Handoff[bytes], piece: bytes) -> None:
    await handoff.send(piece, len(piece))


def _nothing() -> None:
    """A step that writes for itself has nobody to tell that it ended."""


async def _drain(handoffs: Sequence[Handoff[bytes]], writer: DocumentWriter) -> None:
    # a step that fails does not close its hand-off: the writer then waits until it is cancelled
    for handoff in handoffs:
        while True:
            try:
                piece = await handoff.receive()
            except HandoffClosed:
                break
            await writer.write(piece)
