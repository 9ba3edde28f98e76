"""`fetcher topology declare|verify`: what lies on the broker and in the bucket."""

import json
from collections.abc import Sequence

import trio
from rich.console import Console

from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.topology import (
    TOPOLOGY_FAILURES,
    TopologyOrder,
    bucket_rules,
    settle_topology,
)
from fetcher.cli.exits import EXIT_FAILED, EXIT_SETTINGS, done_all_the_same
from fetcher.cli.printing import add_row, cell, complain, listing, print_json, print_plain
from fetcher.domain.topology import Finding, FindingStatus

STYLES = {
    FindingStatus.OK: "green",
    FindingStatus.CREATED: "green",
    FindingStatus.ACCEPTED: "yellow",
    FindingStatus.UNCHECKED: "yellow",
}
BUCKET_RULE = "bucket rule"


def run_topology(
    target: CommandTarget, order: TopologyOrder, console: Console, *, as_json: bool
) -> int:
    """0: as it should be; 1: something is missing, differs or could not be reached."""
    if target.settings.queue_is_embedded:
        complain("topology: RABBITMQ_HOST: not set: the embedded queue has none")
        return EXIT_SETTINGS
    try:
        findings = trio.run(in_room, TOPOLOGY_FAILURES, settle_topology, target, order)
    except TOPOLOGY_FAILURES as failed:
        complain(f"topology: {failed}")
        return EXIT_FAILED
    if order.create:
        declared = sum(found.status is FindingStatus.CREATED for found in findings)
        with done_all_the_same(f"topology: {declared} declared"):
            show(findings, console, target, as_json=as_json)
    else:
        show(findings, console, target, as_json=as_json)
    return EXIT_FAILED if any(counts(found, order) for found in findings) else 0


def counts(found: Finding, order: TopologyOrder) -> bool:
    """Declaring without ``--bucket`` leaves the bucket to its owner."""
    left_out = found.kind == BUCKET_RULE and order.create and not order.puts_bucket_rule
    return found.status.is_failure and not left_out


def show(
    findings: Sequence[Finding], console: Console, target: CommandTarget, *, as_json: bool
) -> None:
    lacking = [
        found.name
        for found in findings
        if found.kind == BUCKET_RULE
        and found.status not in (FindingStatus.OK, FindingStatus.CREATED)
    ]
    rules = [
        dict(rule.document)
        for rule in bucket_rules(target)
        if any(name.endswith(rule.title) for name in lacking)
    ]
    missing_rules = {"Rules": rules} if rules else None
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
        report = {"objects": objects, "bucketLifecycle": missing_rules}
        print_json(report, indent=2)
        return
    table = listing("Topology", "kind", "name", "status", "details")
    for found in findings:
        style = STYLES.get(found.status, "red")
        status = cell(found.status.value, style=style)
        add_row(table, found.kind, found.name, status, "\n".join(found.details))
    console.print(table)
    if missing_rules is not None:
        console.print("The bucket's lifecycle, to be put beside its other rules (or --bucket):")
        print_plain(console, json.dumps(missing_rules, indent=2))
