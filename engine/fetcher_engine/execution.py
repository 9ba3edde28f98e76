"""One execution of a plan: its deadline, its states, its end (spec 10.1, 10.6)."""

from functools import partial

from fetcher_engine.concurrency import Concurrency, DeadlineExceeded
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.execution_states import ExecutionStates
from fetcher_engine.extraction import ExtractionPlan
from fetcher_engine.failures import timed_out
from fetcher_engine.limits import Limits
from fetcher_engine.results import ExecutionState, ExtractionSummary
from fetcher_engine.runner import DocumentWriter, Runner, Write
from fetcher_engine.step_reading import Progress


class Execution:
    """Runs one plan once, within the Engine's limits whatever the plan's own are."""

    def __init__(
        self,
        *,
        plan: ExtractionPlan,
        limits: Limits,
        runner: Runner,
        states: ExecutionStates,
        concurrency: Concurrency,
    ) -> None:
        """Raise ``validation`` for a plan that no planner made."""
        _require_sound(plan)
        self._plan = plan
        self._limits = limits.clamped_by(plan.limits)
        self._runner = runner
        self._states = states
        self._concurrency = concurrency

    async def run(
        self, write: Write, progress: Progress | None
    ) -> tuple[ExecutionState, ExtractionSummary]:
        """The terminal state and the facts of the document.

        Every end is recorded: success, failure, and the loop's cancellation, which goes on.
        """
        try:
            return await self._run(write, progress)
        except EngineError as error:
            failure = error
        except DeadlineExceeded:
            failure = timed_out()
        except Exception:  # noqa: BLE001 - nothing foreign leaves (spec 19.7)
            failure = EngineError(ErrorCategory.INTERNAL, "unexpected engine failure")
        except GeneratorExit:
            # the coroutine is being thrown away: nothing may be awaited any more
            raise
        except BaseException:
            await self._states.canceled()
            raise
        await self._states.failed(failure)
        raise failure

    async def _run(
        self, write: Write, progress: Progress | None
    ) -> tuple[ExecutionState, ExtractionSummary]:
        await self._states.running()
        writer = DocumentWriter(write)
        run = partial(self._runner.run, self._plan, self._limits, writer, progress)
        counts = await self._concurrency.run_with_deadline(self._limits.timeout, run)
        state, completed_at = await self._states.completed()
        summary = ExtractionSummary(
            row_count=sum(counts.values()),
            row_counts=counts,
            size_bytes=writer.size_bytes,
            sha256=writer.sha256(),
            completed_at=completed_at,
        )
        return state, summary


def _require_sound(plan: ExtractionPlan) -> None:
    """A plan may be made by hand: it must say what a planned one says."""
    names = [step.config_name for step in plan.steps]
    ordinals = [step.ordinal for step in plan.steps]
    if ordinals != list(range(len(names))) or names != sorted(set(names)):
        raise EngineError(ErrorCategory.VALIDATION, "extraction plan is invalid")
