"""A manager or a worker ends at each named step of a job: another goes on, and all is as if none
had: one end, one object, one event. So does the embedded default once it is started again.

``make faults`` tries every step, ``make test`` some of them; ``FETCHER_TEST_SEED`` draws the same
ones. ``FETCHER_TEST_FAULTS_DOCUMENT`` names the page that the tables are written into.
"""

import json
import os
import random
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pymongo
from mypy_boto3_s3 import S3Client

from fetcher.consumer import open_result
from tests.e2e.cluster import Cluster, opened, postgres_connection
from tests.faults.alone import Alone
from tests.faults.matrix_outcome import look, write_into
from tests.faults.party import WORKERS, Party
from tests.faults.passing import Passage, Stepping, check_rows, make_views
from tests.faults.sigterm_load import Records
from tests.faults.steps import STEPS, Armory, Comes, How, Step
from tests.scale import IS_NIGHTLY
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

SETTLING_SECONDS: Final = 60.0


def planned(steps: Iterable[Step], ways: Iterable[How] = tuple(How)) -> list[tuple[Step, How]]:
    """Those that need a start without workers come first; then as they come in a job's life."""
    everything = [(step, how) for step in steps for how in ways if how in step.hows]
    if not IS_NIGHTLY:
        seed = int(os.environ.get("FETCHER_TEST_SEED") or secrets.randbits(32))
        print(f"FETCHER_TEST_SEED={seed}")
        chance = random.Random(seed)  # noqa: S311 - steps, no secret
        everything = [chance.choice([each for each in everything if is_quick(*each)])]
    return sorted(everything, key=lambda each: each[0].comes is not Comes.ON_CANCEL)


def is_quick(step: Step, how: How) -> bool:
    return step.comes is Comes.ALWAYS and how is not How.SLOW_STOP


def armory_in(folder: Path) -> Armory:
    steps = folder / "steps"
    steps.mkdir()
    return Armory(steps)


def passed(processes: Stepping, plan: Sequence[tuple[Step, How]]) -> list[Passage]:
    passages = []
    for step, how in plan:
        passages.append(processes.pass_step(step, how))
        print(f"{step.name}, {how}: {passages[-1].cell}", flush=True)
    return passages


def report(passages: Sequence[Passage], *, name: str) -> None:
    for passage in passages:
        passage.check()
    text = table(passages)
    print(text)
    if document := os.environ.get("FETCHER_TEST_FAULTS_DOCUMENT"):
        begin, end = f"<!-- {name}: written by its test -->\n", f"<!-- end of {name} -->\n"
        write_into(Path(document), text, begin=begin, end=end)


def test_whoever_ends_at_whatever_step_another_brings_its_job_to_one_end(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client, tmp_path: Path
) -> None:
    plan = planned(STEPS)
    make_views(shop)
    with (
        pymongo.MongoClient[dict[str, Any]](cluster.mongo_uri) as client,
        Party(cluster, armory_in(tmp_path), Records(client, cluster.mongo_name)) as party,
    ):
        party.start_for(plan[0][0])
        party.connect(postgres_connection(shop))
        passages = passed(party, plan)
        party.start(WORKERS)
        check_ends(cluster, party, s3_client, Records(client, cluster.mongo_name))
    report(passages, name="the kill table")


def check_ends(cluster: Cluster, party: Party, s3_client: S3Client, records: Records) -> None:
    jobs = records.all_by_id()
    outcome = look(cluster, jobs, party.posted, s3_client)
    assert outcome.lost == outcome.stuck == outcome.wrong_objects == outcome.events_missing == set()
    assert outcome.partial_objects == []
    assert outcome.event_ids == outcome.jobs == len(party.posted)
    for job_id, job in jobs.items():
        if job["status"] == "completed":
            stored = s3_client.get_object(Bucket=cluster.bucket, Key=job["result_path"])
            with open_result(
                stored["Body"].read(),
                storage_key=cluster.keys.storage,
                hmac_key=cluster.keys.external_hmac,
                expected_hmac=job["result_hmac"],
                expected_size=job["result_bytes"],
            ) as document:
                check_rows(json.loads(document.read()), party.posted[job_id])
    # nothing of it all was taken for a bad message, and no actor crashed
    assert "delivery_rejected" not in party.logs()
    assert "actor_crashed" not in party.logs()


def test_the_embedded_default_ends_at_whatever_step_and_goes_on_after_its_restart(
    shop: SqlAddress, tmp_path: Path
) -> None:
    plan = planned((step for step in STEPS if step.embedded), (How.KILL, How.STOP))
    make_views(shop)
    with Alone(tmp_path, armory_in(tmp_path)) as alone:
        alone.start()
        alone.connect(postgres_connection(shop))
        passages = passed(alone, plan)
        alone.start()
        check_folder(alone)
    report(passages, name="the embedded kill table")


def check_folder(alone: Alone) -> None:
    """One object and one event for each job, and nothing unfinished."""
    eventually_sync(
        lambda: not alone.rows("SELECT 1 FROM job WHERE event_pending"),
        deadline_seconds=SETTLING_SECONDS,
        what="every event is out",
    )
    jobs = alone.rows("SELECT * FROM job")
    assert {job["status"] for job in jobs} == {"completed"}
    paths = {job["result_path"] for job in jobs}
    eventually_sync(
        lambda: stored_files(alone.data / "objects") == paths,
        deadline_seconds=SETTLING_SECONDS,
        what="each job has its winner's object alone",
    )
    events = [json.loads(line) for line in (alone.data / "events.jsonl").read_text().splitlines()]
    assert {event["headers"]["ce-id"] for event in events} == {
        f"fetcher.job.completed.{job_id}" for job_id in alone.posted
    }
    assert len(jobs) == len(alone.posted)
    for job_id, kind in alone.posted.items():
        check_rows(opened(alone.folder, job_id), kind)
    letters = alone.data / "dead-letters.jsonl"
    assert not letters.exists() or letters.read_text() == ""
    assert "actor_crashed" not in alone.logs()


def stored_files(objects: Path) -> set[str]:
    """Unfinished ones too."""
    files = (file for file in objects.rglob("*") if file.is_file())
    return {str(file.relative_to(objects)) for file in files}


def table(passages: Sequence[Passage]) -> str:
    """In Markdown: a line for each step, a column for each way to end there."""
    ways = [how for how in How if any(each.how is how for each in passages)]
    waits = [each.claimed_after for each in passages if each.claimed_after is not None]
    lines = [
        f"{len(passages)} ends of processes, each in the way of a job of its own;"
        f" {len(waits)} jobs were claimed again, the latest after {max(waits, default=0.0):.1f} s:",
        "",
        "| who | step | where the job stands | " + " | ".join(ways) + " |",
        "|---|---|---|" + "---|" * len(ways),
    ]
    found = {(each.step.name, each.how): each.cell for each in passages}
    for step in dict.fromkeys(each.step for each in passages):
        cells = " | ".join(found.get((step.name, how), "") for how in ways)
        lines.append(f"| {step.role} | `{step.name}` | {step.says} | {cells} |")
    return "\n".join(lines) + "\n"
