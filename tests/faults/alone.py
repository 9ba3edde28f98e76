"""The embedded default, which is stopped at a step and started again over the same folder."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from tests.e2e.cluster import START_SECONDS, Api, starting_embedded
from tests.faults.passing import STEPPING, JobFacts, Stepping, settings
from tests.faults.steps import Armory, Step

NAME: Final = "alone"


class Alone(Stepping):
    is_alone = True

    def __init__(self, folder: Path, armory: Armory) -> None:
        super().__init__(armory)
        self.folder = folder
        self.data = folder / "fetcher-data"

    def start_for(self, step: Step, *, waits: bool = True) -> None:
        self.start(waits=waits)

    def start(self, *, waits: bool = True) -> None:
        if NAME not in self.running:
            changes = settings(self.armory)
            made = starting_embedded(self.folder, changes, name=NAME, module=STEPPING)
            self.begin(NAME, made)
        if waits:
            process, api, _ = self.running[NAME]
            url = f"http://127.0.0.1:{api.port}/health"
            process.wait_until_answers(url, deadline_seconds=START_SECONDS)

    def callers(self) -> list[Api]:
        """One that was stopped is started again first."""
        process, api, ending = self.running[NAME]
        if process.exit_code is not None:
            with ending:
                del self.running[NAME]
            self.ended.append(process)
            self.start()
            api = self.running[NAME][1]
        return [api]

    def facts(self, job_id: str) -> JobFacts:
        job = self.rows("SELECT * FROM job WHERE id = ?", UUID(job_id).bytes)[0]
        ended_at = job["completed_at"]
        return JobFacts(
            status=job["status"],
            owner=job["lease_owner"] or "",
            is_dispatched=job["dispatched_at"] is not None,
            starts=[
                (each["owner"], each["started_at"] / 1000) for each in json.loads(job["attempts"])
            ],
            ended_at=None if ended_at is None else ended_at / 1000,
        )

    def rows(self, statement: str, *values: object) -> list[Any]:
        address = f"file:{self.data / 'fetcher.db'}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return database.execute(statement, values).fetchall()

    def logs(self) -> str:
        return "".join(path.read_text(errors="replace") for path in self.folder.glob(f"{NAME}.*"))
