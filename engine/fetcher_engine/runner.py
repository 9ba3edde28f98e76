"""Executes a plan: steps at once, their bytes in plan order, memory bounded (spec 10, design 5)."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from fetcher_engine.batches import SourceNotes
from fetcher_engine.concurrency import (
    Concurrency,
    Handoff,
    HandoffClosed,
    Job,
)
from fetcher_engine.context import TenantContext
from fetcher_engine.extraction import ExtractionPlan
from fetcher_engine.failures import Checkpoint, from_host, not_persisted
from fetcher_engine.limits import Limits
from fetcher_engine.ports import RowEncoding, Spool
from fetcher_engine.read_ahead import MEMORY_BYTES, OpenSpool, ReadAhead
from fetcher_engine.result_format import ByteBudget, Emit, ResultFormat
from fetcher_engine.source_jobs import SourceJob, run_ordered
from fetcher_engine.sources import Sources
from fetcher_engine.step_reading import Progress, StepReader

Write: TypeAlias = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run tells beside its bytes, by config name."""

    row_counts: Mapping[str, int]
    """Of every source."""

    source_notes: Mapping[str, SourceNotes]
    """Of those of which there is something to tell."""


class DigestingWriter:
    """Counts and digests exactly the bytes that the host takes."""

    def __init__(self, write: Write, checkpoint: Checkpoint) -> None:
        self._write = write
        self._checkpoint = checkpoint
        self._digest = hashlib.sha256()
        self.size_bytes = 0

    async def write(self, piece: bytes) -> None:
        """Raise ``unavailable`` when the host's function fails, with its exception to unwrap."""
        await from_host(
            lambda: self._write(piece),
            not_persisted,
            checkpoint=self._checkpoint,
            passes_engine_errors=True,
        )
        self._digest.update(piece)
        self.size_bytes += len(piece)

    def sha256(self) -> str:
        return self._digest.hexdigest()


class Runner:
    """Runs plans for one operation."""

    def __init__(
        self,
        *,
        sources: Sources,
        concurrency: Concurrency,
        checkpoint: Checkpoint,
        spool: Spool | None,
        row_encoding: RowEncoding | None,
    ) -> None:
        self._sources = sources
        self._concurrency = concurrency
        self._checkpoint = checkpoint
        self._spool = spool
        self._row_encoding = row_encoding

    async def run(
        self,
        plan: ExtractionPlan,
        limits: Limits,
        result_format: ResultFormat,
        writer: DigestingWriter,
        progress: Progress | None,
    ) -> RunFacts:
        """Write the whole result.

        The first failure stops all steps and is raised once every connector is closed; what was
        written until then is worthless to the host.
        """
        await self._checkpoint()
        budget = ByteBudget(limit=limits.max_result_bytes, skeleton=result_format.skeleton_bytes)
        tenant = TenantContext(plan.tenant_id, plan.request_id)
        readers: list[StepReader] = []
        waiting: list[ReadAhead] = []
        for step in plan.steps:
            emit: Emit = writer.write
            on_end = _nothing
            handoff: Handoff[bytes | int] | None = self._concurrency.handoff(MEMORY_BYTES)
            if handoff is not None:
                ahead = ReadAhead(handoff, self._spool_opener(tenant, limits))
                waiting.append(ahead)
                emit, on_end = ahead.send, ahead.close
            reader = StepReader(
                step=step,
                output=result_format.output(step, budget, emit),
                sources=self._sources,
                checkpoint=self._checkpoint,
                on_end=on_end,
                progress=progress,
                row_encoding=self._row_encoding,
            )
            readers.append(reader)
        jobs = [
            SourceJob(step.config_name, partial(reader.run, tenant))
            for step, reader in zip(plan.steps, readers, strict=True)
        ]
        if waiting:
            jobs.insert(0, SourceJob(None, partial(self._drain, waiting, writer)))
        # the writer is no step: it takes no place from them
        places = limits.max_concurrency + bool(waiting)
        run: Job = partial(run_ordered, self._concurrency, jobs, places)
        for ahead in waiting:
            run = partial(self._sources.cleaned_up_after, run, ahead.aclose)
        await run()
        await self._checkpoint()
        if not plan.steps and result_format.empty:
            await writer.write(result_format.empty)
        read = {step.config_name: one for step, one in zip(plan.steps, readers, strict=True)}
        return RunFacts(
            row_counts={name: reader.row_count for name, reader in read.items()},
            source_notes={
                name: reader.notes for name, reader in read.items() if reader.notes != SourceNotes()
            },
        )

    def _spool_opener(self, tenant: TenantContext, limits: Limits) -> OpenSpool | None:
        if self._spool is None:
            return None
        return partial(self._spool.open, tenant, limits.max_result_bytes)

    async def _drain(self, waiting: Sequence[ReadAhead], writer: DigestingWriter) -> None:
        # a step that fails does not close its hand-off: the writer then waits until it is cancelled
        for ahead in waiting:
            ahead.take_turn()
            while True:
                try:
                    piece = await ahead.receive()
                except HandoffClosed:
                    break
                await writer.write(piece)
                await self._checkpoint()
            await self._sources.shielded(ahead.aclose)


def _nothing() -> None:
    """A step that writes for itself has nobody to tell that it ended."""
