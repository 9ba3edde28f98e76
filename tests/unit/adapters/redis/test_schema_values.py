"""A schema as JSON: every field comes back, and nothing else is taken for one."""

import dataclasses
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.adapters.redis import schema_values
from fetcher.adapters.redis.schema_values import NotASchema, schema_from_json, schema_to_json
from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, TableSnapshot

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
columns = st.builds(ColumnSnapshot, texts, texts, st.booleans(), st.booleans())
tables = st.builds(
    TableSnapshot,
    texts,
    st.lists(texts, max_size=4).map(tuple),
    st.lists(columns, max_size=3).map(tuple),
    st.none() | st.integers(0, 2**63 - 1),
)
snapshots = st.builds(
    SchemaSnapshot,
    texts,
    st.lists(tables, max_size=3).map(tuple),
    st.none() | st.datetimes(timezones=st.just(UTC)) | st.datetimes(),
    st.booleans(),
    st.lists(st.builds(AmbiguousTable, texts, st.lists(texts, max_size=3).map(tuple))).map(tuple),
)


@given(snapshots)
def test_every_schema_comes_back_as_it_was(snapshot: SchemaSnapshot) -> None:
    data = schema_to_json(snapshot)
    assert data is not None
    found = schema_from_json(data)
    assert found == snapshot
    # they are no part of a table's equality
    assert [t.estimated_rows for t in found.tables] == [t.estimated_rows for t in snapshot.tables]


@pytest.mark.parametrize("estimate", [-1, True, 1.0, "1"])
def test_estimate_that_is_no_count_is_refused(estimate: object) -> None:
    data = schema_to_json(SchemaSnapshot("db", (TableSnapshot("t", (), (), 7),)))
    assert data is not None
    value = json.loads(data)
    value["tables"][0]["estimatedRows"] = estimate
    with pytest.raises(NotASchema):
        schema_from_json(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        (SchemaSnapshot, ["config_name", "tables", "captured_at", "ignores_case", "ambiguous"]),
        (TableSnapshot, ["name", "fields", "columns", "estimated_rows"]),
        (ColumnSnapshot, ["name", "type", "nullable", "primary_key"]),
        (AmbiguousTable, ["name", "candidates"]),
    ],
)
def test_no_member_of_a_schema_is_forgotten(kind: type, members: list[str]) -> None:
    """A new one belongs into the JSON, whose version then changes."""
    assert [field.name for field in dataclasses.fields(kind)] == members


def test_text_that_json_cannot_say_is_not_kept() -> None:
    assert schema_to_json(SchemaSnapshot("db", (TableSnapshot("\ud800", ()),))) is None


def test_size_is_bounded_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    data = schema_to_json(SchemaSnapshot("db"))
    assert data is not None
    monkeypatch.setattr(schema_values, "MAX_BYTES", len(data))
    assert schema_to_json(SchemaSnapshot("db")) == data
    assert schema_to_json(SchemaSnapshot("dbx")) is None
    assert schema_from_json(data) == SchemaSnapshot("db")
    with pytest.raises(NotASchema):
        schema_from_json(data + b" ")


FULL = schema_to_json(
    SchemaSnapshot(
        "db",
        (TableSnapshot("t", ("f",), (ColumnSnapshot("f", "int"),), 12),),
        datetime(2026, 3, 14, tzinfo=UTC),
        ambiguous=(AmbiguousTable("a", ("A",)),),
    )
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path]
    if isinstance(value, dict):
        found += [each for name in value for each in places(value[name], (*path, name))]
    if isinstance(value, list):
        found += [each for at, one in enumerate(value) for each in places(one, (*path, at))]
    return found


@given(st.data())
def test_a_schema_with_anything_in_one_place_is_a_schema_or_refused(data: st.DataObject) -> None:
    assert FULL is not None
    whole = {"": json.loads(FULL)}
    path = ("", *data.draw(st.sampled_from(places(whole[""]))))
    owner: object = whole
    for step in path[:-1]:
        owner = owner[step]  # type: ignore[index] # a path of this very value
    owner[path[-1]] = data.draw(JSON_VALUES)  # type: ignore[index]
    text = json.dumps(whole[""]).encode()
    try:
        snapshot = schema_from_json(text)
    except NotASchema:
        return
    again = schema_to_json(snapshot)
    assert again is not None
    assert schema_from_json(again) == snapshot


@given(st.binary(max_size=200))
def test_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(NotASchema):
        schema_from_json(data)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 100_000])
def test_depth_and_length_do_no_harm(text: bytes) -> None:
    with pytest.raises(NotASchema):
        schema_from_json(text)
