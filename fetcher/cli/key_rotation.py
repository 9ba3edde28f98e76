"""`fetcher keys rotate`: stored credentials under the key in use."""

from functools import partial
from typing import Any

import trio

from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.key_rotation import ROTATION_FAILURES, rotate_keys
from fetcher.cli.exits import EXIT_FAILED, EXIT_SETTINGS, done_all_the_same, telling_what_was_done
from fetcher.cli.printing import complain, print_json, say
from fetcher.commands.rotate_credentials import Rotated, Rotation, RotationReport, Unopened
from fetcher.domain.errors import StartRefused

WHY = {
    Unopened.UNKNOWN_KEY: "no key of the settings has its version: add it to APP_ENC_KEY_PREVIOUS",
    Unopened.NOT_AUTHENTIC: "the key of its version does not open it: set the password anew",
    Unopened.UNREADABLE: "its record cannot be read",
}


def run_rotation(target: CommandTarget, *, dry_run: bool, as_json: bool) -> int:
    """0: everything is under the key in use; 1: some is left, or it broke off; 2: no key, or no
    records."""
    rotated: list[str] = []

    def tell(each: Rotated, place: int, total: int) -> None:
        if each.rotation is Rotation.ROTATED:
            rotated.append(each.config_name)
        _tell(each, place, total, dry_run=dry_run, as_json=as_json)

    def so_far() -> str:
        done = "to be rotated" if dry_run else "rotated"
        return f"keys rotate: broken off: {len(rotated)} {done} before; it can be run again"

    rotate = partial(rotate_keys, dry_run=dry_run, tell=tell)
    try:
        with telling_what_was_done(so_far):
            report = trio.run(in_room, ROTATION_FAILURES, partial(rotate, target))
    except ROTATION_FAILURES as failed:
        complain(f"keys rotate: {failed}")
        return EXIT_SETTINGS if isinstance(failed, StartRefused) else EXIT_FAILED
    if dry_run:
        _show(report, as_json=as_json)
    else:
        with done_all_the_same(f"keys rotate: {summary(report)}"):
            _show(report, as_json=as_json)
    if not report.is_settled:
        complain(
            "keys rotate: the last look still wrote: somebody changes connections all the time,"
            " perhaps a manager that seals under a former key; run it again"
        )
    return 0 if report.is_all_current else EXIT_FAILED


def _show(report: RotationReport, *, as_json: bool) -> None:
    if as_json:
        print_json(document(report), indent=2)
    else:
        say(summary(report))


def _tell(each: Rotated, place: int, total: int, *, dry_run: bool, as_json: bool) -> None:
    """One line for each connection that is not simply current. What is only planned is printed;
    beside a document, or while something is changed, it is progress: where nobody reads it the
    rotation goes on."""
    if each.rotation is Rotation.CURRENT:
        return
    what = each.rotation.value.replace("_", " ")
    if dry_run and each.rotation is Rotation.ROTATED:
        what = "to be rotated"
    why = f": {WHY[each.why]}" if each.why is not None else ""
    line = f"{place}/{total} {each.config_name}: {what}{why}"
    (say if dry_run and not as_json else complain)(line)


def summary(report: RotationReport) -> str:
    counts = {rotation: len(report.of(rotation)) for rotation in Rotation}
    rotated = "to be rotated" if report.dry_run else "rotated"
    return (
        f"key version {report.key_version}: {counts[Rotation.ROTATED]} {rotated},"
        f" {counts[Rotation.CURRENT]} already current,"
        f" {counts[Rotation.CHANGED]} changed meanwhile,"
        f" {counts[Rotation.UNOPENED]} cannot be opened"
    )


def document(report: RotationReport) -> dict[str, Any]:
    def names(rotation: Rotation) -> list[str]:
        return [each.config_name for each in report.of(rotation)]

    return {
        "keyVersion": report.key_version,
        "dryRun": report.dry_run,
        "rotated": names(Rotation.ROTATED),
        "alreadyCurrent": len(report.of(Rotation.CURRENT)),
        "changedMeanwhile": names(Rotation.CHANGED),
        "cannotBeOpened": [
            {"configName": each.config_name, "reason": each.why}
            for each in report.of(Rotation.UNOPENED)
        ],
    }
