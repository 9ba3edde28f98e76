"""One execution of a plan: its deadline, its states, its end (spec 10.1, 10.6)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from fetcher_engine.concurrency import Concurrency, DeadlineExceeded
from fetcher_engine.context import TenantContext
from fetcher_engine.document import DocumentFormat
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.execution_states import ExecutionStates
from fetcher_engine.extraction import ExtractionPlan
from fetcher_engine.failures import Checkpoint, timed_out, unexpected
from fetcher_engine.limits import Limits
from fetcher_engine.lines import LineFormat
from fetcher_engine.ports import ResultSink
from fetcher_engine.results import (
    ExecutionState,
    ExtractionResult,
    ExtractionSummary,
    ResultReference,
)
from fetcher_engine.runner import DigestingWriter, RunFacts, Runner, Write
from fetcher_engine.sources import Sources
from fetcher_engine.step_reading import Progress
from fetcher_engine.storing import SinkUpload

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionParts:
    """What an execution works with."""

    limits: Limits
    sources: Sources
    runner: Runner
    states: ExecutionStates
    concurrency: Concurrency
    checkpoint: Checkpoint


class Execution:
    """Runs one plan once, within the Engine's limits whatever the plan's own are."""

    def __init__(
        self, plan: ExtractionPlan, parts: ExecutionParts, progress: Progress | None
    ) -> None:
        """Raise ``validation`` for a plan that no planner made."""
        _require_sound(plan)
        self._plan = plan
        self._parts = parts
        self._limits = parts.limits.clamped_by(plan.limits)
        self._progress = progress

    async def stream(self, write: Write) -> tuple[ExecutionState, ExtractionSummary]:
        """Give the document to ``write``: the terminal state and the document's facts."""
        writer = DigestingWriter(write, self._parts.checkpoint)
        state, completed_at, facts = await self._recorded(partial(self._document, writer))
        summary = ExtractionSummary(
            row_count=sum(facts.row_counts.values()),
            row_counts=facts.row_counts,
            source_notes=facts.source_notes,
            size_bytes=writer.size_bytes,
            sha256=writer.sha256(),
            completed_at=completed_at,
        )
        return state, summary

    async def store(self, sink: ResultSink | None) -> ExtractionResult:
        """Put the rows into the sink as lines; whatever goes wrong, nothing of them stays there."""
        if sink is None:
            text = "store mode requires a configured result sink"
            raise EngineError(ErrorCategory.VALIDATION, text)
        uploads: list[SinkUpload] = []
        job = partial(self._lines, sink, uploads)
        state, completed_at, stored = await self._recorded(job, uploads)
        reference, facts = stored
        return ExtractionResult(
            state=state,
            reference=replace(reference, completed_at=completed_at),
            row_counts=facts.row_counts,
            source_notes=facts.source_notes,
        )

    async def _document(self, writer: DigestingWriter) -> RunFacts:
        result_format = DocumentFormat(self._plan.steps)
        return await self._parts.runner.run(
            self._plan, self._limits, result_format, writer, self._progress
        )

    async def _lines(
        self, sink: ResultSink, uploads: list[SinkUpload]
    ) -> tuple[ResultReference, RunFacts]:
        checkpoint = self._parts.checkpoint
        await checkpoint()
        tenant = TenantContext(self._plan.tenant_id, self._plan.request_id)
        upload = await SinkUpload.open(sink, tenant, checkpoint)
        uploads.append(upload)
        writer = DigestingWriter(upload.write, checkpoint)
        facts = await self._parts.runner.run(
            self._plan, self._limits, LineFormat(), writer, self._progress
        )
        reference = await upload.close(
            row_count=sum(facts.row_counts.values()),
            size_bytes=writer.size_bytes,
            sha256=writer.sha256(),
        )
        return reference, facts

    async def _recorded(
        self, job: Callable[[], Awaitable[T]], uploads: Sequence[SinkUpload] = ()
    ) -> tuple[ExecutionState, datetime, T]:
        """The terminal state, its time, and what the job returns within its time.

        Every end is recorded: success, failure, and the loop's cancellation, which goes on. But for
        a success the ``uploads`` are discarded first. A cancellation that comes while ``completed``
        is being saved is what the caller sees: ``canceled`` is then saved after it.
        """
        states = self._parts.states

        async def run() -> T:
            await states.running()
            return await job()

        try:
            result = await self._parts.concurrency.run_with_deadline(self._limits.timeout, run)
            state, completed_at = await states.completed()
            return state, completed_at, result
        except EngineError as error:
            failure = error
        except DeadlineExceeded:
            failure = timed_out()
        except Exception:  # noqa: BLE001 - nothing foreign leaves (spec 19.7)
            failure = unexpected()
        except GeneratorExit:
            # the coroutine is being thrown away: nothing may be awaited any more
            raise
        except BaseException:
            await self._parts.sources.cleaned_up_after(
                lambda: self._discard(uploads), states.canceled
            )
            raise
        await self._parts.sources.cleaned_up_after(
            lambda: self._discard(uploads), lambda: states.failed(failure)
        )
        raise failure

    async def _discard(self, uploads: Sequence[SinkUpload]) -> None:
        for upload in uploads:
            await self._parts.sources.shielded(upload.abort)


def _require_sound(plan: ExtractionPlan) -> None:
    """A plan may be made by hand: it must say what a planned one says.

    A filter on a table that is not read would vanish.
    """
    names = [step.config_name for step in plan.steps]
    ordinals = [step.ordinal for step in plan.steps]
    in_order = ordinals == list(range(len(names))) and names == sorted(set(names))
    if not in_order or any(step.filters.keys() - step.fields.keys() for step in plan.steps):
        raise EngineError(ErrorCategory.VALIDATION, "extraction plan is invalid")
