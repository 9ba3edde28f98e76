"""`fetcher jobs` and `fetcher connections` beside a real service that asks for a token."""

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.e2e.cluster import Api, embedded
from tests.e2e.test_embedded import FIELDS, make_shop, register
from tests.servers.processes import running

TOKEN = "a-token-of-one-machine"
DOWN = {
    "configName": "down_db",
    "type": "POSTGRESQL",
    "host": "127.0.0.1",
    "port": 1,
    "databaseName": "sales",
    "userName": "reader",
    "password": "hunter2-canary",
}


class Terminal:
    def __init__(self, folder: Path, api: Api) -> None:
        self._folder, self._address = folder, f"127.0.0.1:{api.port}"
        self.everything = ""

    def run(self, *arguments: str, token: str = TOKEN) -> tuple[int, str]:
        """The exit code, and what was printed."""
        command = [sys.executable, "-m", "fetcher", *arguments]
        environment = {"SERVER_ADDRESS": self._address, "FETCHER_ACCESS_TOKEN": token}
        with running(
            command, environment=environment, folder=self._folder, name=uuid4().hex
        ) as process:
            code = process.wait_exit(deadline_seconds=60)
            text = process.output_path.read_text()
            self.everything += text + process.log()
            return code, text or process.log()

    def document(self, *arguments: str) -> Any:
        code, text = self.run(*arguments, "--json")
        assert code == 0, text
        return json.loads(text)


def test_an_operator_looks_at_jobs_and_connections_and_changes_them(tmp_path: Path) -> None:
    with embedded(tmp_path, FETCHER_ACCESS_TOKEN=TOKEN) as (process, plain):
        api = Api(plain.port, token=TOKEN)
        make_shop(tmp_path)
        connection = register(api).body["id"]
        down = api.connect(DOWN).body["id"]
        jobs = [api.post_job(FIELDS, None, round=number).body["jobId"] for number in range(3)]
        for job_id in jobs:
            assert api.wait_for_job(job_id)["status"] == "completed"
        terminal = Terminal(tmp_path, api)

        page = terminal.document("jobs", "list", "--status=completed", "--limit=2")
        rest = terminal.document("jobs", "list", "--limit=2", f"--cursor={page['nextCursor']}")
        found = [each["id"] for each in (*page["items"], *rest["items"])]
        assert sorted(found) == sorted(jobs)
        assert terminal.document("jobs", "show", jobs[0])["rowCount"] == 3
        code, told = terminal.run("jobs", "cancel", jobs[0])
        assert (code, "FET-1022" in told) == (1, True)
        code, told = terminal.run("jobs", "rerun", jobs[0])
        new = told.partition(":")[0]
        assert (code, api.wait_for_job(new)["status"]) == (0, "completed")

        names = {each["configName"] for each in terminal.document("connections", "list")["items"]}
        assert names >= {"shop", "down_db"}
        assert terminal.document("connections", "test", connection)["status"] == "success"
        code, told = terminal.run("connections", "test", down)
        assert (code, "stage: tcp" in told, "reason: refused" in told) == (1, True, True)
        assert terminal.run("connections", "delete", down, "--yes") == (0, f"{down}: deleted\n")
        code, told = terminal.run("connections", "show", down)
        assert (code, "FET-1001" in told) == (1, True)

        code, told = terminal.run("jobs", "list", token="another-token-altogether")
        assert (code, "FET-0006" in told) == (1, True), told
        assert TOKEN not in terminal.everything
        assert "hunter2" not in terminal.everything + process.log()
