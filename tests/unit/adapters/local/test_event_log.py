import errno
import os
from pathlib import Path

import orjson
import pytest
import trio

from fetcher.adapters.local.event_log import open_event_log
from fetcher.domain.errors import PortUnavailable, StartRefused
from fetcher.ports import OutgoingMessage


def an_event(number: int = 1) -> OutgoingMessage:
    return OutgoingMessage(
        exchange="fetcher.job.events",
        routing_key="job.completed",
        body=f'{{"n":{number},"text":"ü"}}'.encode(),
        headers={"ce-id": bytearray("é".encode()), "x-retry-count": 0, "x-message-signature": "ab"},
    )


def lines(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


async def test_an_event_is_one_line_with_headers_as_text_and_its_exact_body(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    async with open_event_log(path) as log:
        await log.publish(an_event())
    assert path.read_bytes().endswith(b"\n")
    assert lines(path) == [
        {
            "exchange": "fetcher.job.events",
            "routingKey": "job.completed",
            "headers": {"ce-id": "é", "x-retry-count": 0, "x-message-signature": "ab"},
            "body": '{"n":1,"text":"ü"}',
        }
    ]


async def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    async with open_event_log(tmp_path / "events.jsonl"):
        assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600


async def test_events_of_an_earlier_run_stay(tmp_path: Path) -> None:
    for number in (1, 2):
        async with open_event_log(tmp_path / "events.jsonl") as log:
            await log.publish(an_event(number))
    assert [line["body"] for line in lines(tmp_path / "events.jsonl")] == [
        '{"n":1,"text":"ü"}',
        '{"n":2,"text":"ü"}',
    ]


async def test_publishing_side_by_side_keeps_lines_whole(tmp_path: Path) -> None:
    async with open_event_log(tmp_path / "events.jsonl") as log, trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(log.publish, an_event(number))
    assert len(lines(tmp_path / "events.jsonl")) == 50


@pytest.mark.parametrize(
    ("torn", "kept"),
    [
        (b'{"whole":1}\n{"to', b'{"whole":1}\n'),
        (b'{"to', b""),
        (b"", b""),
        (b'{"whole":1}\n', b'{"whole":1}\n'),
        (b'{"whole":1}\n' + b"x" * 200_000, b'{"whole":1}\n'),
    ],
    ids=["torn", "only torn", "empty", "whole", "long torn"],
)
async def test_a_torn_last_line_is_cut_off_when_the_log_opens(
    tmp_path: Path, torn: bytes, kept: bytes
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(torn)
    async with open_event_log(path) as log:
        assert path.read_bytes() == kept
        await log.publish(an_event())
    assert len(lines(path)) == len(kept.splitlines()) + 1


@pytest.mark.parametrize("can_cut", [True, False], ids=["at once", "before the next"])
async def test_a_line_that_failed_halfway_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_cut: bool
) -> None:
    path = tmp_path / "events.jsonl"
    real_write = os.write

    def write_half_of_it(descriptor: int, data: memoryview) -> int:
        real_write(descriptor, data[:10])
        raise OSError(errno.ENOSPC, "no space")

    def fail(_descriptor: int, _size: int) -> None:
        raise OSError(errno.EIO, "it hangs")

    async with open_event_log(path) as log:
        await log.publish(an_event(1))
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", write_half_of_it)
            if not can_cut:
                patched.setattr(os, "ftruncate", fail)
            with pytest.raises(PortUnavailable) as caught:
                await log.publish(an_event(2))
        assert path.read_bytes().endswith(b"\n") is can_cut
        assert caught.value.__context__ is None
        await log.publish(an_event(3))
    assert [line["body"] for line in lines(path)] == ['{"n":1,"text":"ü"}', '{"n":3,"text":"ü"}']


async def test_a_log_that_cannot_be_opened_refuses_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="cannot be opened to be written"):
        async with open_event_log(tmp_path):
            pytest.fail("a folder was opened as a file")
