"""Backup of a service that works, restored, and the service started on it."""

import json
import signal
import sys
from pathlib import Path

from tests.e2e.cluster import Api, embedded, opened
from tests.e2e.test_embedded import FIELDS, make_shop, register
from tests.servers.processes import running


def command(folder: Path, *arguments: str, name: str, **environment: str) -> str:
    """Its output; it must end with 0."""
    asked = [sys.executable, "-m", "fetcher", *arguments]
    with running(asked, environment=environment, folder=folder, name=name) as process:
        assert process.wait_exit(deadline_seconds=60) == 0, process.log()
        return process.output_path.read_text()


def post_jobs(api: Api, count: int) -> list[str]:
    """Jobs that differ, so that none is a repeat of another."""
    posted = [
        api.post_job(FIELDS, {"shop": {"items": {"price": {"gt": [-number]}}}})
        for number in range(1, count + 1)
    ]
    return [str(each.body["jobId"]) for each in posted]


def test_backup_under_load_is_restored_and_served(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    with embedded(first) as (process, api):
        make_shop(first)
        assert register(api).status == 201
        done = post_jobs(api, 3)
        for job_id in done:
            assert api.wait_for_job(job_id)["status"] == "completed"
        # these run while the backup is made
        late = [
            str(
                api.post_job(FIELDS, {"shop": {"items": {"price": {"lt": [number]}}}}).body["jobId"]
            )
            for number in range(50, 62)
        ]
        told = json.loads(
            command(
                first,
                "backup",
                str(tmp_path / "backup"),
                "--with-master-key",
                "--json",
                name="backup",
            )
        )
        assert told["missing"] == []
        for job_id in late:
            assert api.wait_for_job(job_id)["status"] == "completed"
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=30) == 0
    command(second, "restore", str(tmp_path / "backup"), name="restore")
    make_shop(second)
    with embedded(second) as (_, api):
        for job_id in done:
            assert api.call("GET", f"/v1/fetcher/{job_id}").body["status"] == "completed"
            assert len(opened(second, job_id)["shop"]["items"]) == 3
        assert api.call("GET", f"/v1/fetcher/{done[0]}/result/preview").status == 200
        # what was under way in the snapshot is run to its end; the youngest may be unknown to it
        known = [
            job_id for job_id in late if api.call("GET", f"/v1/fetcher/{job_id}").status == 200
        ]
        for job_id in known:
            assert api.wait_for_job(job_id)["status"] == "completed"
        key = api.call("GET", f"/v1/fetcher/{done[1]}").body["resultPath"]
        document = json.loads(command(second, "open-result", key, name="open"))
        assert len(document["shop"]["items"]) == 3
