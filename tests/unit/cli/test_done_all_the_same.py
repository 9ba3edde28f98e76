"""What was changed is changed, whoever reads of it: no exit code denies that, and no print that
fails breaks a change off halfway."""

import errno
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest
import trio

from fetcher.bootstrap.service_calls import ServiceAnswer
from fetcher.cli import dead_letters, key_rotation, main, service_requests, topology
from fetcher.commands.dead_letters import Redriven
from fetcher.commands.rotate_credentials import Rotated, Rotation, RotationReport
from fetcher.domain.errors import PortUnavailable
from tests.unit.commands.test_rotate_credentials import NEW

ID = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"
ROTATED = tuple(
    Rotated(config_name=name, rotation=Rotation.ROTATED, why=None) for name in ("a_db", "b_db")
)
FAILURES = {"Broken pipe": errno.EPIPE, "No space left on device": errno.ENOSPC}
BROKER = {
    "RABBITMQ_HOST": "mq",
    "RABBITMQ_DEFAULT_USER": "u",
    "RABBITMQ_DEFAULT_PASS": "p",
    "MONGO_URI": "mongodb://db.invalid",
    "MONGO_NAME": "fetcher",
    "APP_ENC_KEY": NEW,
    "ALLOW_INSECURE_TLS": "true",
}


class Gone(io.StringIO):
    """A standard output that takes nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def write(self, _: str, /) -> NoReturn:
        raise OSError(self._number, "")


async def rotates(*_: object, tell: Callable[..., None], dry_run: bool) -> RotationReport:
    await trio.lowlevel.checkpoint()
    for place, each in enumerate(ROTATED, start=1):
        tell(each, place, len(ROTATED))
    return RotationReport(key_version="2", dry_run=dry_run, ends=ROTATED)


async def redrives(*_: object, tell: Callable[..., None], **__: object) -> None:
    await trio.lowlevel.checkpoint()
    tell(None, Redriven.DISPATCHED)


async def purges(*_: object, tell: Callable[[int], None]) -> int:
    await trio.lowlevel.checkpoint()
    tell(7)
    return 7


async def counts(*_: object, **__: object) -> int:
    await trio.lowlevel.checkpoint()
    return 3


async def settles(*_: object) -> list[object]:
    await trio.lowlevel.checkpoint()
    return []


def answers(status: int, document: object = None) -> Callable[..., object]:
    async def call(*_: object) -> ServiceAnswer:
        await trio.lowlevel.checkpoint()
        body = json.dumps(document).encode() if document is not None else b""
        return ServiceAnswer(status=status, body=body)

    return call


CALLS = (service_requests, "_call")


@pytest.mark.parametrize("why", FAILURES)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    ("arguments", "where", "stand_in", "done"),
    [
        (
            ["keys", "rotate"],
            (key_rotation, "rotate_keys"),
            rotates,
            "keys rotate: key version 2: 2 rotated, 0 already current, 0 changed meanwhile,"
            " 0 cannot be opened",
        ),
        (
            ["dlq", "redrive"],
            (dead_letters, "redrive_letters"),
            redrives,
            "dlq: 1 dispatched anew, 0 skipped",
        ),
        (["dlq", "purge", "--yes"], (dead_letters, "purge_letters"), purges, "dlq: 7 purged"),
        (
            ["dlq", "export", "letters.jsonl"],
            (dead_letters, "list_letters"),
            counts,
            "dlq: letters.jsonl: 0 of 3 dead letters",
        ),
        (
            ["topology", "declare"],
            (topology, "settle_topology"),
            settles,
            "topology: 0 declared",
        ),
        (
            ["connections", "delete", ID, "--yes"],
            CALLS,
            answers(204),
            f"connections: {ID}: deleted",
        ),
        (
            ["jobs", "cancel", ID],
            CALLS,
            answers(202, {"jobId": ID, "status": "processing"}),
            f"jobs: {ID}: its worker was asked to stop",
        ),
        (
            ["jobs", "rerun", ID],
            CALLS,
            answers(202, {"jobId": "new", "message": "queued"}),
            "jobs: new: queued",
        ),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_what_was_changed_is_told_on_standard_error_where_standard_output_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    where: tuple[ModuleType, str],
    stand_in: Callable[..., object],
    done: str,
    as_json: bool,
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "topology":
        for name, value in BROKER.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(*where, stand_in)
    monkeypatch.setattr(sys, "argv", ["fetcher", *arguments, *(["--json"] if as_json else [])])
    monkeypatch.setattr(sys, "stdout", Gone(FAILURES[why]))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    # A deletion has no document.
    failed = f"; standard output: {why}" if not (as_json and arguments[1] == "delete") else ""
    told = capsys.readouterr().err.splitlines()
    assert told[-1:] == ([f"{done}{failed}"] if failed else [])


async def rotates_one_and_fails(*_: object, tell: Callable[..., None], **__: object) -> NoReturn:
    await trio.lowlevel.checkpoint()
    tell(ROTATED[0], 1, 2)
    raise PortUnavailable("the record store is away")


def test_a_rotation_that_fails_halfway_tells_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(key_rotation, "rotate_keys", rotates_one_and_fails)
    monkeypatch.setattr(sys, "argv", ["fetcher", "keys", "rotate"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.splitlines() == [
        "1/2 a_db: rotated",
        "keys rotate: broken off: 1 rotated before; it can be run again",
        "keys rotate: the record store is away",
    ]


async def never_settles(*_: object, **__: object) -> RotationReport:
    await trio.lowlevel.checkpoint()
    return RotationReport(key_version="2", dry_run=False, ends=ROTATED, is_settled=False)


def test_a_rotation_whose_last_look_wrote_says_why_it_is_not_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(key_rotation, "rotate_keys", never_settles)
    monkeypatch.setattr(sys, "argv", ["fetcher", "keys", "rotate"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "the last look still wrote" in capsys.readouterr().err
