"""One table read to its end, with a driver that answers what a test wants."""

import json

import pytest

from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EncodedBatch, StreamRequest
from tests.unit.datasources.oracle.fake_driver import (
    STAFF,
    Answer,
    FakeDatabase,
    Row,
    a_catalogue,
    a_connector,
)

LIMIT = 1000


async def read_all(
    database: FakeDatabase,
    fields: tuple[str, ...] = ("ID",),
    *,
    filters: dict[str, object] | None = None,
    options: JobOptions | None = None,
    max_batch_bytes: int = 1024 * 1024,
    texts: Texts | None = None,
) -> list[EncodedBatch]:
    connector = a_connector({"STAFF": fields}, options=options, texts=texts, max_cell_bytes=LIMIT)
    request = StreamRequest(
        config_name="ora",
        tables={"STAFF": fields},
        filters={"STAFF": filters} if filters else {},
        max_batch_bytes=max_batch_bytes,
    )
    try:
        stream = await connector.open_stream(request)
        batches = []
        while (batch := await stream.next_batch()) is not None:
            assert isinstance(batch, EncodedBatch)
            batches.append(batch)
        return batches
    finally:
        await connector.close()


def a_database(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, columns: list[Row] | None = None
) -> FakeDatabase:
    answers = [*a_catalogue(columns or STAFF), answer]
    return FakeDatabase(answers=answers).install(monkeypatch)


async def one_cell(
    monkeypatch: pytest.MonkeyPatch,
    column: tuple[object, ...],
    *fetched: object,
    options: JobOptions | None = None,
) -> str:
    """The JSON text that one fetched row of a column of this type becomes."""
    database = a_database(
        monkeypatch, Answer("SELECT ", [fetched]), [("HR", "STAFF", "C", *column, "Y")]
    )
    (batch,) = await read_all(database, ("C",), options=options)
    text = batch.data.decode()
    assert text.startswith('{"C":')
    assert batch.row_count == 1
    json.loads(text)
    return text[5:-1]


def of(
    name: str, *, owner: str | None = None, precision: int | None = None, scale: int | None = None
) -> tuple[object, ...]:
    return name, owner, 22, precision, scale
