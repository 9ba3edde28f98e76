"""One record a line, whatever is in it (spec configuration 10.1)."""

import errno
import io
import json
import logging
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import structlog

from fetcher.log_secrets import live_secrets
from fetcher.logs import configure_logs, send_logs_to_stderr


def all_to_stdout() -> None:
    configure_logs(env_name="", level="", encoding="")


def told(capsys: pytest.CaptureFixture[str], **facts: object) -> dict[str, object]:
    configure_logs(env_name="production", level="", encoding="")
    structlog.get_logger().warning("happened", **facts)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    record: dict[str, object] = json.loads(lines[0])
    assert record["msg"] == "happened"
    assert record["level"] == "WARN"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(record["timestamp"]))
    assert re.fullmatch(r"test_logs\.py:\d+", str(record["caller"]))
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
        ("\udce9", "\\udce9"),
        ({1: "a"}, {"1": "a"}),
    ],
)
def test_what_json_does_not_have_is_told_all_the_same(
    capsys: pytest.CaptureFixture[str], value: object, shown: object
) -> None:
    assert told(capsys, value=value)["value"] == shown


def test_a_value_from_outside_cannot_forge_a_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, name='a\r\n{"msg":"forged"}')["name"] == 'a{"msg":"forged"}'


@pytest.mark.parametrize("encoding", ["json", "console"])
def test_nothing_from_outside_moves_the_cursor_of_who_reads_logs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    hostile = "a\x1b[2J\x9b1A\x7f\u202e\udc80b"
    configure_logs(env_name="", level="", encoding=encoding)
    log = structlog.get_logger()
    log.warning(hostile, value=hostile, listed=[hostile], error=ValueError(hostile))
    log.error("broke", exc_info=ValueError(hostile))
    logging.getLogger("a.library").warning(hostile)
    said = capsys.readouterr()
    text = (said.out + said.err).replace("\n", "")
    assert text.count("[2J") >= 6, "it is told all the same"
    assert not [each for each in text if not each.isprintable()]


def test_a_full_disk_fails_nobody_and_is_told_of_later(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FillingDisk()
    monkeypatch.setattr(
        sys, "stdout", io.TextIOWrapper(io.BufferedWriter(disk), line_buffering=True)
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


@pytest.mark.parametrize(
    ("env_name", "encoding", "on_terminal", "as_json"),
    [
        ("", "", False, True),
        ("local", "", True, False),
        ("development", "", True, False),
        ("production", "", True, True),
        ("staging", "", False, True),
        ("production", "console", False, False),
        ("local", " JSON ", True, True),
    ],
)
def test_records_are_json_but_for_people_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    env_name: str,
    encoding: str,
    on_terminal: bool,
    as_json: bool,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: on_terminal)
    configure_logs(env_name=env_name, level="", encoding=encoding)
    structlog.get_logger().info("happened")
    line = capsys.readouterr().out
    if as_json:
        assert json.loads(line)["msg"] == "happened"
    else:
        assert not line.startswith("{")
        assert "happened" in line


def test_a_closed_or_narrow_standard_output_fails_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    narrow = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    configure_logs(env_name="", level="", encoding="json")
    structlog.get_logger().warning("Größe")
    structlog.get_logger().warning("plain")
    assert b"plain" in written.getvalue()
    assert b'"log_records_lost","n":1' in written.getvalue()
    narrow.close()
    structlog.get_logger().warning("happened")


class Shy:
    def __repr__(self) -> str:
        raise TypeError("canary")


@pytest.mark.parametrize("encoding", ["json", "console"])
@pytest.mark.parametrize("value", [Shy(), [Shy()], {Shy(): 1}, {(1, "a"): 1}, {b"a": "\udce9"}])
def test_a_value_that_cannot_be_shown_fails_nobody(
    capsys: pytest.CaptureFixture[str], value: object, encoding: str
) -> None:
    configure_logs(env_name="production", level="", encoding=encoding)
    structlog.get_logger().warning("happened", value=value)
    told = capsys.readouterr().out
    assert "happened" in told
    assert "canary" not in told


def a_record(text: object, *values: object) -> None:
    logging.getLogger("a.canary-of-a-record.library").warning(text, *values)


@pytest.mark.parametrize("configure", [send_logs_to_stderr, all_to_stdout])
@pytest.mark.parametrize(
    ("values", "why"),
    [
        (("port %d of %s", "x", 1, 2), "TypeError"),
        (("%d", "canary-of-a-record"), "TypeError"),
        (("%(name)s", {"other": 1}), "KeyError"),
        (("%s", Shy()), "TypeError"),
        ((Shy(),), "TypeError"),
    ],
)
def test_a_librarys_malformed_record_fails_not_the_library(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    configure: Callable[[], None],
    values: tuple[object, ...],
    why: str,
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    live_secrets.hold(["canary-of-a-record"])
    configure()
    a_record(*values)
    told = capsys.readouterr().err
    assert re.fullmatch(
        rf"WARNING a\.\*\*\*\.library: test_logs\.py:\d+: {why} in its text\n", told
    )


@pytest.mark.parametrize("configure", [send_logs_to_stderr, all_to_stdout])
def test_a_standard_error_that_cannot_be_written_fails_nobody(
    monkeypatch: pytest.MonkeyPatch, configure: Callable[[], None]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    closed = io.StringIO()
    closed.close()
    configure()
    for broken in (closed, Unwritable()):
        monkeypatch.setattr(sys, "stderr", broken)
        a_record("happened")
        structlog.get_logger().warning("happened")


class Unwritable(io.StringIO):
    """As a test's or a notebook's stream may fail."""

    def write(self, _: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "nobody reads")


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


def test_a_command_warns_of_each_dependency_without_tls_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    send_logs_to_stderr()
    log = structlog.get_logger()
    for feature in ("mongo_tls", "mongo_tls", "s3_tls", "mongo_tls"):
        log.warning("plaintext_connection", feature=feature)
    for _ in range(2):
        log.warning("something else")
    told = capsys.readouterr().err
    assert [told.count(text) for text in ("mongo_tls", "s3_tls", "something else")] == [1, 1, 2]
