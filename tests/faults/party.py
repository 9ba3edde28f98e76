"""Two managers and two workers, of which one is stopped at a step: the others go on."""

from datetime import UTC, datetime
from typing import Final

from tests.e2e.cluster import START_SECONDS, Api, Cluster
from tests.faults.passing import STEPPING, JobFacts, Stepping, settings
from tests.faults.sigterm_load import Records
from tests.faults.steps import Armory, Comes, Step

MANAGERS: Final = ("manager-1", "manager-2")
WORKERS: Final = ("worker-1", "worker-2")


class Party(Stepping):
    def __init__(self, cluster: Cluster, armory: Armory, records: Records) -> None:
        super().__init__(armory)
        self._cluster = cluster
        self._records = records
        cluster.changes.update(settings(armory))

    def start_for(self, step: Step, *, waits: bool = True) -> None:
        """What is cancelled before a worker has it needs none."""
        self.start(MANAGERS if step.comes is Comes.ON_CANCEL else MANAGERS + WORKERS, waits=waits)

    def start(self, names: tuple[str, ...], *, waits: bool = True) -> None:
        for name in names:
            if name not in self.running:
                make = self._cluster.manager if name in MANAGERS else self._cluster.worker
                self.begin(name, make(name, module=STEPPING, waits=False))
        for name in names if waits else ():
            process, api, _ = self.running[name]
            url = f"http://127.0.0.1:{api.port}/health"
            process.wait_until_answers(url, deadline_seconds=START_SECONDS)

    def callers(self) -> list[Api]:
        return [self.running[name][1] for name in MANAGERS if name in self.running]

    def facts(self, job_id: str) -> JobFacts:
        job = self._records.job(job_id)
        return JobFacts(
            status=job["status"],
            owner=job.get("lease_owner") or "",
            is_dispatched=job.get("dispatched_at") is not None,
            starts=[
                (each["owner"], _seconds(each["started_at"])) for each in job.get("attempts", [])
            ],
            ended_at=_seconds(job["completed_at"]) if job.get("completed_at") else None,
        )

    def logs(self) -> str:
        return "".join(
            path.read_text(errors="replace")
            for name in MANAGERS + WORKERS
            for path in self._cluster.folder.glob(f"{name}.*")
        )


def _seconds(stored: datetime) -> float:
    """BSON's times come without their zone."""
    return stored.replace(tzinfo=UTC).timestamp()
