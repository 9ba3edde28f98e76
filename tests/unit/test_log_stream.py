"""A sink that nobody reads costs records, never the process."""

import io
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

import pytest
import structlog

from fetcher.log_stream import MAX_WAITING_BYTES, LogStream, flush_logs
from fetcher.logs import configure_logs

DEADLINE_SECONDS = 20.0
RECORD = "x" * 1000


def say(log: LogStream, text: str) -> None:
    """As structlog prints."""
    print(text, file=cast("TextIO", log), flush=True)


class Pipe:
    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        self.lines = os.fdopen(self.reader, "rb")
        self.stream = io.TextIOWrapper(os.fdopen(writer, "wb"), encoding="utf-8")


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.stream.close()
    made.lines.close()


def test_who_logs_goes_on_while_nobody_reads_and_what_was_lost_is_told(pipe: Pipe) -> None:
    log = LogStream(pipe.stream)
    count = 2 * MAX_WAITING_BYTES // len(RECORD)
    for number in range(count):
        say(log, json.dumps({"n": number, "text": RECORD}))
    say(log, "no number")
    place = lost = 0
    # The thread may have had room for one in between: what is lost is told in its place.
    while place <= count:
        line = pipe.lines.readline()
        if b"log_records_lost" in line:
            lost += json.loads(line)["n"]
            place += json.loads(line)["n"]
        else:
            assert line == b"no number\n" or json.loads(line)["n"] == place, "in order"
            place += 1
    assert lost > 0
    say(log, "goes on")
    assert pipe.lines.readline() == b"goes on\n"


def test_a_record_is_there_after_a_flush(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", pipe.stream)
    configure_logs(env_name="production", level="", encoding="")
    structlog.get_logger().warning("happened", name="Größe")
    flush_logs(DEADLINE_SECONDS)
    assert select.select([pipe.reader], [], [], 0)[0]
    assert json.loads(os.read(pipe.reader, 65536))["name"] == "Größe"


def test_a_reader_that_has_gone_fails_nobody() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with io.TextIOWrapper(os.fdopen(writer, "wb")) as stream:
        say(LogStream(stream), "unseen")
        flush_logs(DEADLINE_SECONDS)


LOGS = """
import os, signal, sys, structlog
from fetcher.logs import configure_logs, mask_uncaught, send_logs_to_stderr
send_logs_to_stderr()
mask_uncaught()
configure_logs(env_name="production", level="", encoding="")
log = structlog.get_logger()
for n in range(int(sys.argv[1])):
    log.warning("happened", n=n, text="x" * 1000)
"""


def started(code: str, count: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", LOGS + code, str(count)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('broke')"])
def test_the_last_records_are_there_when_the_process_has_ended(end: str) -> None:
    with started(end, 300) as process:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert [json.loads(line)["n"] for line in out.splitlines()] == list(range(300))
    assert (b"ValueError: broke" in err) == ("raise" in end)


@pytest.mark.parametrize("end", ["", "raise ValueError('broke')"])
def test_the_process_ends_while_nobody_reads(end: str) -> None:
    with started(end, 3000) as process:
        try:
            assert process.wait(DEADLINE_SECONDS) == int("raise" in end)
        finally:
            process.kill()


SECOND_SIGNAL = """
import trio
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.signals import drain_on_signals, open_signals
async def run():
    with open_signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        async with trio.open_nursery() as nursery:
            lifecycle = Lifecycle()
            nursery.start_soon(drain_on_signals, signals, lifecycle)
            await lifecycle.draining.wait()
            os.kill(os.getpid(), signal.SIGTERM)
trio.run(run)
"""


@pytest.mark.parametrize("count", [0, 3000])
def test_a_second_signal_ends_the_process_at_once_also_then(count: int) -> None:
    with started(SECOND_SIGNAL, count) as process:
        try:
            assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
            assert process.stdout is not None
            assert count or b"signal_received" in process.stdout.read()
        finally:
            process.kill()


def test_a_forked_child_logs_on_its_own(pipe: Pipe) -> None:
    log = LogStream(pipe.stream)
    say(log, "parent")
    child = os.fork()
    if child == 0:
        say(log, "child")
        flush_logs(DEADLINE_SECONDS)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert {pipe.lines.readline(), pipe.lines.readline()} == {b"child\n", b"parent\n"}
