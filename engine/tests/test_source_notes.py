"""What connectors tell of their reading, and how it reaches the host."""

from collections.abc import Callable
from typing import Any

import pytest

from fetcher_engine import ErrorCategory, RowBatch, SourceNotes
from fetcher_engine.memory import MemoryResultSink, MemorySource

from .hosts import Host, host_of
from .loops import every_loop, run
from .plans import TWO, execute
from .refusals import SENTINEL, refuses

pytestmark = every_loop

TOLD = SourceNotes(has_snapshot=False, replaced_characters=12)


def told_host(**options: Any) -> Host:
    host = host_of(TWO, **options)
    host.sources["b"].notes = TOLD
    return host


def test_only_sources_with_something_to_tell_are_named() -> None:
    assert execute(host_of(TWO)).source_notes == {}
    result = execute(told_host())
    assert result.source_notes == {"b": TOLD}
    assert result.to_public_dict()["sources"] == {
        "b": {"snapshot": False, "replacedCharacters": 12}
    }


def test_a_stored_result_has_them_too() -> None:
    host = told_host(result_sink=MemoryResultSink())
    assert execute(host).source_notes == {"b": TOLD}


def test_a_streamed_result_has_them_too() -> None:
    host = told_host()

    async def write(piece: bytes) -> None:
        """The bytes do not matter."""

    async def main() -> None:
        summary = await host.engine.stream_extraction(await host.plan_all(), write)
        assert summary.source_notes == {"b": TOLD}

    run(main)


@pytest.mark.parametrize(
    ("notes", "public"),
    [
        (SourceNotes(), {}),
        (SourceNotes(has_snapshot=False), {"snapshot": False}),
        (SourceNotes(replaced_characters=1), {"replacedCharacters": 1}),
    ],
)
def test_what_goes_without_saying_is_not_said(notes: SourceNotes, public: object) -> None:
    assert notes.to_public_dict() == public


@pytest.mark.parametrize(
    "members",
    [
        {"replaced_characters": -1},
        {"replaced_characters": True},
        {"replaced_characters": 1.0},
        {"replaced_characters": SENTINEL},
        {"has_snapshot": None},
    ],
)
def test_notes_are_a_flag_and_a_count(members: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="these are no notes of a source"):
        SourceNotes(**members)  # type: ignore[arg-type]  # a connector's mistake


class OwnStream:
    """One row; whatever ``notes`` does."""

    def __init__(self) -> None:
        self._batches = [RowBatch("t", [{"x": 1}])]

    async def next_batch(self) -> RowBatch | None:
        return self._batches.pop() if self._batches else None

    async def aclose(self) -> None:
        """There is nothing to free."""


class RaisingStream(OwnStream):
    def notes(self) -> SourceNotes:
        raise RuntimeError(SENTINEL)


class ChattingStream(OwnStream):
    def notes(self) -> str:
        return SENTINEL


class WaitingStream(OwnStream):
    async def notes(self) -> SourceNotes:
        return TOLD


def own_host(make: Callable[[], OwnStream], monkeypatch: pytest.MonkeyPatch) -> Host:
    source = MemorySource.of_rows({"t": [{"x": 1}]})
    host = Host({"a": source})
    build = host.factories["a"].build

    def built(descriptor):  # type: ignore[no-untyped-def]  # as the factory's own
        connector = build(descriptor)

        async def open_stream(request: object) -> OwnStream:
            return make()

        monkeypatch.setattr(connector, "open_stream", open_stream)
        return connector

    monkeypatch.setattr(host.factories["a"], "build", built)
    return host


def test_a_stream_need_not_tell_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    result = execute(own_host(OwnStream, monkeypatch))
    assert (result.document, result.source_notes) == (b'{"a":{"t":[{"x":1}]}}', {})


@pytest.mark.parametrize(
    ("make", "reason"), [(RaisingStream, None), (ChattingStream, "malformed_notes")]
)
def test_a_stream_that_tells_nonsense_fails_the_run(
    make: Callable[[], OwnStream], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = own_host(make, monkeypatch)
    with refuses(ErrorCategory.INTERNAL, "extraction step failed unexpectedly") as caught:
        execute(host)
    assert (caught.value.source, caught.value.reason) == ("a", reason)


def test_notes_that_would_have_to_be_waited_for_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    host = own_host(WaitingStream, monkeypatch)
    with refuses(ErrorCategory.UNAVAILABLE, "failed to query datasource"):
        execute(host)
