"""What is done is recorded with its end, and an entry that fails costs no answer."""

import errno
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from fetcher.commands.audit import AUDIT_SECONDS, Audit, Caller
from fetcher.domain.audit import (
    MAX_CHARACTERS,
    AuditAction,
    AuditEntry,
    AuditOutcome,
    AuditPage,
    AuditQuery,
)
from fetcher.domain.errors import FetcherError, OutputFailed, PortUnavailable
from fetcher_engine import EngineError, ErrorCategory

NOW = datetime(2026, 3, 14, 15, 9, 26, 535_897, tzinfo=UTC)


class Trail:
    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.failure: Exception | None = None
        self.hangs = False

    async def append(self, entry: AuditEntry) -> None:
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        if self.failure is not None:
            raise self.failure
        self.entries.append(entry)

    async def list_page(self, query: AuditQuery) -> AuditPage:
        raise NotImplementedError

    async def delete_old(self, *, older_than_seconds: float, limit: int) -> int:
        raise NotImplementedError


class Bench:
    def __init__(self) -> None:
        self.trail = Trail()
        self.told: list[AuditEntry] = []
        self.lost: list[tuple[AuditEntry, str]] = []
        self.audit = Audit(
            trail=self.trail,
            now=lambda: NOW,
            tell=self.told.append,
            unrecorded=lambda entry, why: self.lost.append((entry, why)),
        )


async def test_deed_is_told_and_recorded_with_what_became_known() -> None:
    bench = Bench()
    caller = Caller(actor="acme/ada", request_id="req-1")
    async with bench.audit.deed(AuditAction.JOB_CREATED, caller) as deed:
        deed.target, deed.product = "t-1", "Reporting"
    [entry] = bench.trail.entries
    assert bench.told == [entry]
    assert entry == AuditEntry(
        id=entry.id,
        time=NOW.replace(microsecond=535_000),
        actor="acme/ada",
        action=AuditAction.JOB_CREATED,
        target="t-1",
        product="Reporting",
        request_id="req-1",
        outcome="succeeded",
    )


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (FetcherError("FET-1021", "Job In Progress", "secret"), "FET-1021"),
        (PortUnavailable("secret"), PortUnavailable.code),
        (EngineError(ErrorCategory.TIMEOUT, "secret"), "timeout"),
        (ValueError("secret"), "crashed"),
        (ExceptionGroup("", [FetcherError("FET-1021", "Job In Progress", "secret")]), "FET-1021"),
        (ExceptionGroup("", [PortUnavailable("secret"), ValueError("secret")]), "crashed"),
    ],
)
async def test_refusal_and_failure_are_recorded_by_their_code_and_go_on(
    error: Exception, outcome: str
) -> None:
    bench = Bench()
    with pytest.raises(type(error)) as raised:
        async with bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a"), target="t-1"):
            raise error
    assert raised.value is error
    [entry] = bench.trail.entries
    assert (entry.outcome, entry.target) == (outcome, "t-1")
    assert "secret" not in repr(entry)


async def test_caller_that_goes_away_leaves_an_entry() -> None:
    bench = Bench()
    with trio.CancelScope() as scope:
        async with bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a")):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert [entry.outcome for entry in bench.trail.entries] == [AuditOutcome.INTERRUPTED]


async def test_caller_that_goes_away_while_tasks_run_leaves_the_same_entry() -> None:
    """A nursery hands on a group of cancellations."""
    bench = Bench()
    with trio.CancelScope() as scope:
        async with (
            bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a")),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()
    assert scope.cancelled_caught
    assert [entry.outcome for entry in bench.trail.entries] == [AuditOutcome.INTERRUPTED]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (BaseExceptionGroup("", [BaseExceptionGroup("", [KeyboardInterrupt()])]), "interrupted"),
        (OutputFailed(BrokenPipeError(errno.EPIPE, "")), "interrupted"),
        (ExceptionGroup("", [OutputFailed(OSError(errno.ENOSPC, ""))]), "interrupted"),
        (BaseExceptionGroup("", [KeyboardInterrupt(), ValueError("secret")]), "crashed"),
    ],
)
async def test_command_that_is_interrupted_or_that_nobody_hears_has_not_crashed(
    error: BaseException, outcome: str
) -> None:
    bench = Bench()
    with pytest.raises(type(error)):
        async with bench.audit.deed(AuditAction.KEYS_ROTATED, Caller(actor="local")):
            raise error
    assert [entry.outcome for entry in bench.trail.entries] == [outcome]


async def test_what_fails_while_its_caller_goes_away_is_recorded_as_that_failure() -> None:
    bench = Bench()

    async def fails() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise PortUnavailable("secret")

    with pytest.RaisesGroup(PortUnavailable), trio.CancelScope() as scope:
        async with (
            bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a")),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(fails)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert [entry.outcome for entry in bench.trail.entries] == [PortUnavailable.code]


async def test_deed_that_was_handed_on_ends_with_whoever_does_the_rest_or_is_dropped() -> None:
    bench = Bench()
    for does_the_rest in (True, False):
        async with bench.audit.deed(AuditAction.RESULT_DOWNLOADED, Caller(actor="a")) as deed:
            rest = deed.hand_on()
        assert bench.trail.entries == bench.told
        if does_the_rest:
            async with rest:
                pass
        else:
            await rest.drop()
    assert [entry.outcome for entry in bench.trail.entries] == ["succeeded", "interrupted"]


async def test_entry_that_the_store_does_not_take_costs_no_answer() -> None:
    bench = Bench()
    bench.trail.failure = PortUnavailable("away")
    async with bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a")):
        pass
    assert bench.lost == [(bench.told[0], PortUnavailable.code)]


async def test_store_that_hangs_holds_the_answer_for_its_deadline_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = Bench()
    bench.trail.hangs = True
    started = trio.current_time()
    async with bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a")):
        pass
    assert trio.current_time() - started == pytest.approx(AUDIT_SECONDS)
    assert bench.lost == [(bench.told[0], "timeout")]


async def test_what_a_caller_wrote_is_bounded_and_printable() -> None:
    bench = Bench()
    async with bench.audit.deed(AuditAction.JOB_CANCELLED, Caller(actor="a\n\x00" + "b" * 999)):
        pass
    [entry] = bench.trail.entries
    assert entry.actor == "a??" + "b" * (MAX_CHARACTERS - 3)
