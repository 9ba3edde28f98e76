"""One job for each step and each way to end there, whoever runs it, and what it comes to."""

import secrets
import signal
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Final, Self

import psycopg

from tests.e2e.cluster import PRODUCT, START_SECONDS, Answer, Api
from tests.faults.stepping import SLOW_VARIABLE
from tests.faults.steps import BY_NAME, FOLDER_VARIABLE, Armory, Comes, How, Kind, Met, Step
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

STEPPING: Final = "tests.faults.stepping"
LEASE_SECONDS: Final = 8.0
AFTER_LEASE_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 0.3
JOB_WAIT_SECONDS: Final = 0.7
SLOW_SECONDS: Final = 2.0
GIVING_BACK_SECONDS: Final = 30.0
"""Beside drain and wait: giving jobs back, the relay's last round, and closing."""
COMING_SECONDS: Final = 60.0
VIEWS: Final = {
    Kind.BIG: "SELECT n AS id, repeat(md5(n::text), 256) AS note"
    " FROM generate_series(1, 1100) AS n",
    Kind.SLOW: "SELECT n AS id, repeat(md5(n::text), 2048) AS note, pg_sleep(0.1) IS NULL AS late"
    " FROM generate_series(1, 40) AS n",
}
ROWS: Final = {Kind.BIG: 1100, Kind.SLOW: 40}


def settings(armory: Armory) -> dict[str, str]:
    return {
        "JOB_LEASE_SEC": str(LEASE_SECONDS),
        "JOB_LEASE_RENEW_SEC": "0.5",
        "JOB_LEASE_MARGIN_SEC": "1",
        "JOB_REAP_SEC": "0.5",
        "JOB_DISPATCH_SWEEP_SEC": "0.5",
        "OUTBOX_REPAIR_SEC": "1",
        "READYZ_DRAIN_DELAY_SEC": str(DRAIN_SECONDS),
        "SHUTDOWN_JOB_WAIT_SEC": str(JOB_WAIT_SECONDS),
        "DATASOURCE_INCLUDE_VIEWS": "true",
        FOLDER_VARIABLE: str(armory.folder),
        SLOW_VARIABLE: str(SLOW_SECONDS),
    }


def make_views(shop: SqlAddress) -> None:
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        for kind, rows in VIEWS.items():
            database.execute(f"CREATE VIEW {kind.name.lower()} AS {rows}")


def fields_of(kind: Kind) -> Mapping[str, Any]:
    fields = ["id", "note"] if kind is Kind.BIG else ["id", "note", "late"]
    return {"sales_db": {kind.name.lower(): fields}}


def check_rows(document: Mapping[str, Any], kind: Kind) -> None:
    """All of them, in their order."""
    [rows] = document["sales_db"].values()
    assert [row["id"] for row in rows] == [*range(1, ROWS[kind] + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What a job's record says; times are seconds since 1970."""

    status: str
    owner: str
    is_dispatched: bool
    starts: list[tuple[str, float]]
    """Of its attempts, with their owners."""
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class Passage:
    """What became of one job whose process was stopped at a step."""

    step: Step
    how: How
    claimed_after: float | None
    """Seconds from the stop to the next claim; None where no other attempt was needed."""
    ended_after: float
    attempts: int
    is_alone: bool
    """Nobody else was there: a process had to start first."""

    def check(self) -> None:
        latest = LEASE_SECONDS + AFTER_LEASE_SECONDS + (START_SECONDS if self.is_alone else 0)
        assert self.claimed_after is None or self.claimed_after <= latest, self
        assert self.claimed_after is not None or self.ended_after <= latest, self

    @property
    def cell(self) -> str:
        waited = "none" if self.claimed_after is None else f"{self.claimed_after:.1f} s"
        return f"{waited}, {self.attempts}"


Started = tuple[FetcherProcess, Api, ExitStack]


class Stepping:
    """Processes of which one is stopped at a step of a job; who is missing is started again."""

    is_alone = False
    """Whether one is all there is."""

    def __init__(self, armory: Armory) -> None:
        self.armory = armory
        self.running: dict[str, Started] = {}
        self.ended: list[FetcherProcess] = []
        """Those that were started anew before anybody looked at how they ended."""
        self.posted: dict[str, Kind] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for _, _, closing in self.running.values():
            closing.close()

    def begin(self, name: str, made: AbstractContextManager[tuple[FetcherProcess, Api]]) -> None:
        ending = ExitStack()
        self.running[name] = (*ending.enter_context(made), ending)

    def start_for(self, step: Step, *, waits: bool = True) -> None:
        """Start whoever the step needs and is missing, and wait until they answer."""
        raise NotImplementedError

    def callers(self) -> list[Api]:
        """Who may be asked, one after the other."""
        raise NotImplementedError

    def facts(self, job_id: str) -> JobFacts:
        raise NotImplementedError

    def connect(self, body: Mapping[str, object]) -> None:
        """409: an earlier try took effect, and nobody heard of it."""
        answer = self._call("POST", "/v1/management/connections", body)
        assert answer.status in (201, 409), answer.body

    def pass_step(self, step: Step, how: How) -> Passage:
        """One job of its own, until it has ended."""
        self.start_for(step)
        first = BY_NAME["part-stored"]
        if step.comes is Comes.AFTER_DEATH:
            self.armory.arm(first, How.KILL)
        if step.comes is not Comes.ON_CANCEL:
            self.armory.arm(step, how)
        job_id = self._asked(step.kind)
        if step.comes is Comes.AFTER_DEATH:
            self._see_out(self._wait_for(first), How.KILL)
            self.start_for(step, waits=False)
        elif step.comes is Comes.IN_DRAIN:
            self._process(self._owner(job_id)).send(signal.SIGTERM)
        elif step.comes is Comes.ON_CANCEL:
            self._cancel(job_id, step, how)
        met = self._wait_for(step)
        self._see_out(met, how)
        self.start_for(step, waits=False)
        return self._passage(step, how, job_id, met)

    def _cancel(self, job_id: str, step: Step, how: How) -> None:
        eventually_sync(
            lambda: self.facts(job_id).is_dispatched,
            deadline_seconds=COMING_SECONDS,
            what="its message was sent",
        )
        self.armory.arm(step, how)
        answer = self._call("POST", f"/v1/fetcher/{job_id}/cancel", None)
        assert answer.status in (200, 202), answer.body

    def _asked(self, kind: Kind) -> str:
        metadata = {"source": PRODUCT, "n": secrets.token_hex(8)}
        body = {"dataRequest": {"mappedFields": fields_of(kind)}, "metadata": metadata}
        answer = self._call("POST", "/v1/fetcher", body)
        assert answer.status in (200, 202), answer.body
        job_id = str(answer.body["jobId"])
        self.posted[job_id] = kind
        return job_id

    def _call(self, method: str, path: str, body: object) -> Answer:
        """A caller whose server dies under its hands asks the next one the same, or the same one
        once it is there again."""

        def asked() -> Answer | None:
            for api in self.callers():
                try:
                    answer = api.call(method, path, body)
                except OSError:
                    continue
                if answer.status < 500:
                    return answer
            return None

        answer = eventually_sync(asked, deadline_seconds=COMING_SECONDS, what="somebody answers")
        assert answer is not None
        return answer

    def _owner(self, job_id: str) -> int:
        """Its process."""
        owner = eventually_sync(
            lambda: self.facts(job_id).owner,
            deadline_seconds=COMING_SECONDS,
            what="a worker has the job",
        )
        return int(owner.rpartition(":")[2])

    def _process(self, pid: int) -> FetcherProcess:
        return next(found for found, _, _ in self.running.values() if found.pid == pid)

    def _wait_for(self, step: Step) -> Met:
        met = eventually_sync(
            lambda: self.armory.met(step),
            deadline_seconds=COMING_SECONDS,
            what=f"somebody comes to {step.name}",
        )
        assert met is not None
        return met

    def _see_out(self, met: Met, how: How) -> None:
        code = -signal.SIGKILL if how is How.KILL else 0
        within = DRAIN_SECONDS + JOB_WAIT_SECONDS + SLOW_SECONDS + GIVING_BACK_SECONDS
        with ExitStack() as ending:
            for name, (process, _, its_end) in list(self.running.items()):
                if process.pid == met.pid:
                    del self.running[name]
                    self.ended.append(process)
                    ending.enter_context(its_end)
            stopped = next(each for each in self.ended if each.pid == met.pid)
            assert stopped.wait_exit(deadline_seconds=within) == code

    def _passage(self, step: Step, how: How, job_id: str, met: Met) -> Passage:
        eventually_sync(
            lambda: self.facts(job_id).ended_at is not None,
            deadline_seconds=2 * (LEASE_SECONDS + AFTER_LEASE_SECONDS) + START_SECONDS,
            what=f"the job of {step.name} ends",
        )
        facts = self.facts(job_id)
        assert facts.ended_at is not None
        assert facts.status == ("cancelled" if step.comes is Comes.ON_CANCEL else "completed")
        others = [at for owner, at in facts.starts if not owner.endswith(f":{met.pid}")]
        later = [at - met.at for at in others if at >= met.at]
        return Passage(
            step=step,
            how=how,
            claimed_after=min(later, default=None),
            ended_after=facts.ended_at - met.at,
            attempts=len(facts.starts),
            is_alone=self.is_alone or step.comes is Comes.AFTER_DEATH,
        )
