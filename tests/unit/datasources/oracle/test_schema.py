"""Names, scopes and the catalogue: golden statements, canned rows."""

import pytest

from fetcher.datasources.oracle.names import TableId, TableNames, quoted
from fetcher.datasources.oracle.schema import COLUMNS, KEYS
from fetcher_engine import AmbiguousTable, SchemaSnapshot, SourceFailure, Stage, StreamRequest
from tests.unit.datasources.oracle.fake_driver import (
    STAFF,
    FakeDatabase,
    Row,
    a_catalogue,
    a_connector,
)


def columns(owner: str, table: str, *names: str) -> list[Row]:
    return [(owner, table, name, "VARCHAR2", None, 40, None, None, "Y") for name in names]


async def discovered(
    monkeypatch: pytest.MonkeyPatch,
    found: list[Row],
    requested: dict[str, tuple[str, ...]] | None = None,
    *,
    user: str = "HR",
    schema: str | None = None,
    keys: list[Row] | None = None,
    num_rows: int | None = None,
    include_views: bool = False,
) -> tuple[SchemaSnapshot, FakeDatabase]:
    answers = a_catalogue(found, keys or [], num_rows=num_rows)
    database = FakeDatabase(answers=answers, user=user).install(monkeypatch)
    connector = a_connector(requested, schema=schema, include_views=include_views)
    snapshot = await connector.discover_schema()
    await connector.close()
    return snapshot, database


def tables(snapshot: SchemaSnapshot) -> list[str]:
    return [table.name for table in snapshot.tables]


async def test_a_listing_takes_two_statements_with_the_owner_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot, database = await discovered(monkeypatch, STAFF, keys=[("HR", "STAFF", "ID")])
    catalogue = database.executed[2:]
    assert [each.statement for each in catalogue] == [
        COLUMNS.format(owners=":1", views=""),
        KEYS.format(owners=":1"),
    ]
    assert [each.values for each in catalogue] == [["HR"], ["HR"]]
    (table,) = snapshot.tables
    assert (table.name, table.fields) == ("STAFF", ("ID", "NAME", "PAY"))
    assert [(c.name, c.type, c.nullable, c.primary_key) for c in table.columns] == [
        ("ID", "NUMBER", False, True),
        ("NAME", "VARCHAR2", True, False),
        ("PAY", "NUMBER", True, False),
    ]
    assert snapshot.ignores_case


@pytest.mark.parametrize("num_rows", [0, 1200, None])
async def test_rows_are_those_of_the_gathered_statistics(
    num_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, database = await discovered(monkeypatch, STAFF, {"staff": ("ID",)}, num_rows=num_rows)
    assert [(t.name, t.estimated_rows) for t in snapshot.tables] == [("STAFF", num_rows)]
    assert (
        " c.data_length, c.data_precision, c.data_scale, c.nullable, t.num_rows\n"
        "FROM (SELECT owner, table_name, num_rows FROM all_tables\n" in database.statements[2]
    )


async def test_views_are_listed_where_the_operator_wants_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, database = await discovered(monkeypatch, STAFF, include_views=True)
    assert "UNION ALL SELECT owner, view_name, NULL FROM all_views" in database.statements[2]


@pytest.mark.parametrize(
    ("user", "requested", "binds"),
    [
        ("APP", {"hr.staff": ()}, ["APP", "HR", "hr"]),
        ("HR", {"HR.STAFF": ()}, ["HR"]),
        ("HR", {"staff": (), "OPS.RUNS": ()}, ["HR", "OPS"]),
        ("APP", {" .staff": (), "HR.STAFF": ()}, ["APP", "HR"]),
        ("APP", {"db1.HR.STAFF": ()}, ["APP", "DB1", "DB1.HR", "HR", "db1", "db1.HR"]),
    ],
)
async def test_the_own_schema_is_in_the_scope_and_binds_have_no_holes(
    user: str,
    requested: dict[str, tuple[str, ...]],
    binds: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, database = await discovered(monkeypatch, STAFF, requested, user=user)
    asked = database.executed[2]
    assert asked.values == binds
    marks = ", ".join(f":{number}" for number in range(1, len(binds) + 1))
    assert f"owner IN ({marks})" in asked.statement


@pytest.mark.parametrize(
    ("user", "requested", "shown"),
    [
        ("HR", {"staff": ()}, ["STAFF"]),
        ("HR", {"HR.STAFF": ()}, ["HR.STAFF"]),
        ("APP", {"hr.staff": ()}, ["HR.STAFF"]),
        ("APP", {"staff": ()}, []),
        ("HR", {"STAFF": (), "hr.Staff": ()}, ["HR.STAFF", "STAFF"]),
        ("HR", {'STAFF"': ()}, []),
    ],
)
async def test_an_own_schema_prefix_means_the_bare_name(
    user: str,
    requested: dict[str, tuple[str, ...]],
    shown: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot, _ = await discovered(monkeypatch, STAFF, requested, user=user)
    assert tables(snapshot) == shown


async def test_the_connections_schema_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, database = await discovered(monkeypatch, STAFF, user="APP", schema="hr")
    assert database.executed[2].values == ["HR", "hr"]
    assert tables(snapshot) == ["STAFF"]


async def test_same_tables_of_two_owners_keep_their_own_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [*columns("HR", "LOG", "A"), *columns("OPS", "LOG", "B")]
    snapshot, _ = await discovered(monkeypatch, found, {"LOG": (), "OPS.LOG": ()})
    assert [(t.name, t.fields) for t in snapshot.tables] == [("LOG", ("A",)), ("OPS.LOG", ("B",))]


NAMES = [TableId("HR", "LEDGER"), TableId("HR", "Ledger"), TableId("HR", "Notes")]
NAMES += [TableId("HR", "q1.x"), TableId("HR", "DUP"), TableId("HR", "dup1"), TableId("HR", "Dup1")]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Ledger", ["Ledger"]),
        ("LEDGER", ["LEDGER"]),
        ("ledger", ["LEDGER"]),
        ("notes", ["Notes"]),
        ("hr.notes", ["Notes"]),
        ("q1.x", ["q1.x"]),
        ("HR.q1.x", ["q1.x"]),
        ("DUP1", ["Dup1", "dup1"]),
        ("dup1", ["dup1"]),
        ("ghost", []),
    ],
)
def test_a_name_is_exact_then_upper_then_unique(written: str, meant: list[str]) -> None:
    names = TableNames(None, {written: ()})
    (name,) = names.requested or ()
    assert [each.table for each in names.meant(name, NAMES, "HR")] == meant


def test_two_spellings_of_one_request_must_agree() -> None:
    names = TableNames(None, {"Ledger": (), "LEDGER": ()})
    assert [each.table for each in names.meant("LEDGER", NAMES, "HR")] == ["LEDGER", "Ledger"]
    names = TableNames(None, {"LEDGER": (), "GHOST": ()})
    assert names.meant("GHOST", NAMES, "HR") == ()


async def test_an_ambiguous_name_is_told_with_all_it_could_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [*columns("HR", "dup", "A"), *columns("HR", "Dup", "B")]
    snapshot, _ = await discovered(monkeypatch, found, {"DUP": ()})
    assert tables(snapshot) == []
    assert snapshot.ambiguous == (AmbiguousTable("DUP", ("Dup", "dup")),)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (("Amount",), {"Amount"}),
        (("AMOUNT",), {"AMOUNT"}),
        (("amount",), {"Amount", "AMOUNT"}),
        (("Amount", "AMOUNT"), set()),
    ],
)
def test_of_columns_alike_the_one_that_was_written_is_told(
    written: tuple[str, ...], told: set[str]
) -> None:
    names = TableNames(None, {"T": written})
    assert names.told("T", ["Amount", "AMOUNT", "Id"]) == told | {"Id"}


@pytest.mark.parametrize("name", ['we"ird', "", "a\0"])
def test_what_cannot_be_quoted_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="quoted"):
        quoted(name)


@pytest.mark.parametrize(
    ("found", "fields"),
    [([], ("ID",)), (STAFF, ("ID", "GONE")), (columns("HR", "STAFF", 'I"D'), ('I"D',))],
)
async def test_what_is_gone_since_the_plan_ends_the_job(
    found: list[Row], fields: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeDatabase(answers=a_catalogue(found)).install(monkeypatch)
    connector = a_connector({"STAFF": fields})
    with pytest.raises(SourceFailure) as caught:
        await connector.open_stream(StreamRequest(config_name="ora", tables={"STAFF": fields}))
    await connector.close()
    failure = caught.value
    assert (failure.stage, failure.reason, failure.table) == (
        Stage.SCHEMA,
        "schema changed",
        "STAFF",
    )
