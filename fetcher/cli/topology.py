"""`fetcher topology declare|verify`: what lies on the broker and in the bucket."""

import json
import sys
from collections.abc import Sequence

import trio
from rich.console import Console
from rich.table import Table

from fetcher.adapters.s3.lifecycle import abort_rule
from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.topology import TOPOLOGY_FAILURES, TopologyOrder, settle_topology
from fetcher.cli.exits import EXIT_FAILED, EXIT_SETTINGS
from fetcher.domain.topology import Finding, FindingStatus
from fetcher.settings import Settings

STYLES = {
    FindingStatus.OK: "green",
    FindingStatus.CREATED: "green",
    FindingStatus.ACCEPTED: "yellow",
    FindingStatus.UNCHECKED: "yellow",
}
BUCKET_RULE = "bucket rule"


def run_topology(
    settings: Settings, order: TopologyOrder, console: Console, *, as_json: bool
) -> int:
    """0: as it should be; 1: something is missing, differs or could not be reached."""
    if settings.queue_is_embedded:
        print("topology: RABBITMQ_HOST: not set: the embedded queue has none", file=sys.stderr)
        return EXIT_SETTINGS
    try:
        findings = trio.run(in_room, TOPOLOGY_FAILURES, settle_topology, settings, order)
    except TOPOLOGY_FAILURES as failed:
        print(f"topology: {failed}", file=sys.stderr)
        return EXIT_FAILED
    show(findings, console, settings, as_json=as_json)
    return EXIT_FAILED if any(counts(found, order) for found in findings) else 0


def counts(found: Finding, order: TopologyOrder) -> bool:
    """Declaring without ``--bucket`` leaves the bucket to its owner."""
    left_out = found.kind == BUCKET_RULE and order.create and not order.puts_bucket_rule
    return found.status.is_failure and not left_out


def show(
    findings: Sequence[Finding], console: Console, settings: Settings, *, as_json: bool
) -> None:
    missing_rule = next(
        (
            {"Rules": [abort_rule(settings.object_storage_key_prefix)]}
            for found in findings
            if found.kind == BUCKET_RULE
            and found.status not in (FindingStatus.OK, FindingStatus.CREATED)
        ),
        None,
    )
    if as_json:
        objects = [
            {
                "kind": found.kind,
                "name": found.name,
                "status": found.status.value,
                "details": list(found.details),
            }
            for found in findings
        ]
        report = {"objects": objects, "bucketLifecycle": missing_rule}
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    table = Table(title="Topology", title_justify="left")
    for column in ("kind", "name", "status", "details"):
        table.add_column(column, overflow="fold")
    for found in findings:
        style = STYLES.get(found.status, "red")
        details = "\n".join(found.details).replace("[", "\\[")
        name = found.name.replace("[", "\\[")
        table.add_row(found.kind, name, f"[{style}]{found.status.value}[/]", details)
    console.print(table)
    if missing_rule is not None:
        console.print("The bucket's lifecycle, to be put beside its other rules (or --bucket):")
        console.print(json.dumps(missing_rule, indent=2), markup=False, highlight=False)
