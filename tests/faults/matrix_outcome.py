"""What is left when every job of the matrix has had its time, and the table made of it."""

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mypy_boto3_s3 import S3Client

from tests.e2e import broker
from tests.e2e.cluster import Cluster
from tests.faults.faults import Kind
from tests.faults.matrix import LINKS, Step
from tests.faults.sigterm_load import stored_keys
from tests.servers.waiting import DeadlineMissedError, eventually_sync

SETTLING_SECONDS: Final = 60.0
BEGIN: Final = "<!-- the fault matrix: written by its test -->\n"
END: Final = "<!-- end of the fault matrix -->\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    jobs: int
    completed: int
    failed: "Counter[str]"
    """By the source they name, or else by their code."""
    lost: set[str]
    stuck: set[str]
    partial_objects: list[str]
    wrong_objects: set[str]
    """Beside the one that each completed job names, or missing of these."""
    events_missing: set[str]
    event_ids: int


def look(
    cluster: Cluster,
    jobs: Mapping[str, Mapping[str, Any]],
    accepted: Iterable[str],
    s3_client: S3Client,
) -> Outcome:
    """``jobs`` are the records, after their deadline."""
    completed = {job_id for job_id, job in jobs.items() if job["status"] == "completed"}
    failed = {job_id for job_id, job in jobs.items() if job["status"] in ("failed", "cancelled")}
    paths = {jobs[job_id]["result_path"] for job_id in completed}
    said: dict[str, set[str]] = {}

    def all_is_said() -> bool:
        for event in broker.read_all(cluster.amqp_url, cluster.event_queue):
            said.setdefault(json.loads(event.body)["jobId"], set()).add(event.header("ce-id"))
        return completed | failed <= said.keys()

    def all_is_clean() -> bool:
        return not _uploads(cluster, s3_client) and set(_objects(cluster, s3_client)) == paths

    for settled in (all_is_said, all_is_clean):
        try:
            eventually_sync(settled, deadline_seconds=SETTLING_SECONDS)
        except DeadlineMissedError as missed:
            print(missed)  # what is missing is counted
    return Outcome(
        jobs=len(jobs),
        completed=len(completed),
        failed=Counter(_reason(jobs[job_id]) for job_id in failed),
        lost=set(accepted) - jobs.keys(),
        stuck=jobs.keys() - completed - failed,
        partial_objects=_uploads(cluster, s3_client),
        wrong_objects=set(_objects(cluster, s3_client)) ^ paths,
        events_missing=(completed | failed) - said.keys(),
        event_ids=len(set().union(*said.values())),
    )


def _reason(job: Mapping[str, Any]) -> str:
    failure = job.get("failure", {})
    return str(failure.get("source") or failure.get("code"))


def _uploads(cluster: Cluster, s3_client: S3Client) -> list[str]:
    listed = s3_client.list_multipart_uploads(Bucket=cluster.bucket)
    return [upload["Key"] for upload in listed.get("Uploads", [])]


def _objects(cluster: Cluster, s3_client: S3Client) -> list[str]:
    return stored_keys(s3_client, cluster.bucket)


def table(outcome: Outcome, steps: list[Step], *, seed: int, hold_seconds: float) -> str:
    """In Markdown: what was counted, then the seconds of each recovery."""
    seconds = sorted(step.recovery_seconds for step in steps)
    drained = sorted(step.drained_seconds for step in steps)
    counted = {
        "jobs": outcome.jobs,
        "completed": outcome.completed,
        "failed for their source": outcome.failed.total(),
        "lost": len(outcome.lost),
        "stuck": len(outcome.stuck),
        "partial objects": len(outcome.partial_objects),
        "events missing": len(outcome.events_missing),
        "distinct `ce-id`s": outcome.event_ids,
    }
    lines = [
        f"{outcome.jobs} jobs, {len(steps)} faults of about {hold_seconds:.1f} s, seed {seed}:",
        "",
        "| " + " | ".join(counted) + " |",
        "|" + "---|" * len(counted),
        "| " + " | ".join(map(str, counted.values())) + " |",
        "",
        "From a fault's end to the next job that completes: median"
        f" {statistics.median(seconds):.2f} s, worst {seconds[-1]:.1f} s; until every job that was"
        f" active at its end has ended: median {statistics.median(drained):.1f} s, worst"
        f" {drained[-1]:.1f} s. The first of both, in seconds (in"
        " brackets where the fault came upon nothing):",
        "",
        "| | " + " | ".join(LINKS) + " |",
        "|---|" + "---|" * len(LINKS),
    ]
    found = {(step.link, step.fault.kind): _cell(step) for step in steps}
    lines += [
        f"| {kind} | " + " | ".join(found.get((link, kind), "") for link in LINKS) + " |"
        for kind in Kind
    ]
    return "\n".join(lines) + "\n"


def _cell(step: Step) -> str:
    seconds = f"{step.recovery_seconds:.1f}"
    # who is refused is not heard of
    return seconds if step.met or step.fault.kind is Kind.REFUSE else f"({seconds})"


def write_into(document: Path, text: str, *, begin: str = BEGIN, end: str = END) -> None:
    """Between its marks; what stands around them stays."""
    before, _, rest = document.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    assert found, f"{document} has no place for the table"
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
