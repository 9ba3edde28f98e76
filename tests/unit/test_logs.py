"""One record a line, whatever is in it (spec configuration 10.1)."""

import errno
import io
import json
import sys
from decimal import Decimal
from typing import Any

import pytest
import structlog

from fetcher.logs import configure_logs


def told(capsys: pytest.CaptureFixture[str], **facts: object) -> dict[str, object]:
    configure_logs(env_name="production", level="", encoding="")
    structlog.get_logger().warning("happened", **facts)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    record: dict[str, object] = json.loads(lines[0])
    assert record["msg"] == "happened"
    assert record["level"] == "WARN"
    return record


def test_values_stand_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    record = told(capsys, source="Größe", rows=7, ratio=0.5, stage=None, keys=("a", "b"))
    assert record["source"] == "Größe"
    assert record["rows"] == 7
    assert record["ratio"] == 0.5
    assert record["stage"] is None
    assert record["keys"] == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("1.50"), "Decimal('1.50')"),
        (2**70, 2**70),
        ("\udce9", "\udce9"),
        ({1: "a"}, {"1": "a"}),
    ],
)
def test_what_json_does_not_have_is_told_all_the_same(
    capsys: pytest.CaptureFixture[str], value: object, shown: object
) -> None:
    assert told(capsys, value=value)["value"] == shown


def test_a_value_from_outside_cannot_forge_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, name='a\r\n{"msg":"forged"}')["name"] == 'a{"msg":"forged"}'


def test_a_full_disk_fails_nobody_and_is_told_of_later(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FillingDisk()
    monkeypatch.setattr(
        sys, "stderr", io.TextIOWrapper(io.BufferedWriter(disk), line_buffering=True)
    )
    configure_logs(env_name="production", level="", encoding="")
    log = structlog.get_logger()
    disk.is_full = True
    for _ in range(3):
        log.warning("unseen", text="x" * 10_000)
    disk.is_full = False
    log.warning("seen")
    log.warning("seen again")
    told = [json.loads(line) for line in bytes(disk.content).splitlines()[-3:]]
    assert [record["msg"] for record in told] == ["seen", "log_records_lost", "seen again"]
    assert told[1]["n"] == 3


class FillingDisk(io.RawIOBase):
    """A file on a disk that is full at times."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.is_full = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.content += data
        return len(data)
