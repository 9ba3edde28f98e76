"""Every operator on every database, from HTTP to the opened result (design section 7).

SQL Server and Oracle do not run here: there the rows come from an evaluation of the statements that
were sent, and those are the golden ones.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fetcher.domain.connections import SourceType
from tests.e2e.cluster import Api, embedded
from tests.integration.datasources.mongo_server import make_users, running_server
from tests.operators import databases
from tests.operators.asking import BUNDLE, Source
from tests.operators.cases import CASES, spelled
from tests.operators.fake_sqlserver import served_rows
from tests.operators.injection import ATTEMPTS, IDENTIFIERS
from tests.operators.refusals import BAD_REQUESTS, BAD_VALUES
from tests.operators.rows import COLUMNS, ROWS
from tests.operators.statements import STATEMENTS
from tests.servers.addresses import SqlAddress

PASSWORD = "p@ss wörd%/?#:'\"\\"
ROOT = Path(__file__).parents[2]

Sent = Callable[[], set[str]]
"""Statements that asked for rows, with what was bound."""


@dataclass(frozen=True, slots=True)
class Asked:
    source: Source
    kind: SourceType
    sent: Sent | None = None


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Path]]:
    """One process for all databases that its own drivers reach."""
    folder = tmp_path_factory.mktemp("operators")
    with embedded(folder) as (_, api):
        yield api, folder


@dataclass(frozen=True, slots=True)
class Filled:
    """A database with the rows: what registers it, and the process that reads it."""

    body: Mapping[str, object]
    api: Api
    folder: Path
    sent: Sent | None = None


def _api(request: pytest.FixtureRequest) -> tuple[Api, Path]:
    found: tuple[Api, Path] = request.getfixturevalue("service")
    return found


@contextmanager
def _postgres(request: pytest.FixtureRequest) -> Iterator[Filled]:
    address: SqlAddress = request.getfixturevalue("postgres")
    with databases.own_postgres(address) as own:
        yield Filled(databases.fill_postgres(own), *_api(request))


@contextmanager
def _mariadb(request: pytest.FixtureRequest) -> Iterator[Filled]:
    with databases.filled_mariadb(request.getfixturevalue("mariadb")) as body:
        yield Filled(body, *_api(request))


@contextmanager
def _mongo(request: pytest.FixtureRequest) -> Iterator[Filled]:
    api, folder = _api(request)
    data = folder / "mongo"
    with running_server(data, is_kept=True) as port:
        make_users(port, [("reader", PASSWORD, "admin")])
    with running_server(data, auth=True) as port:
        address = SqlAddress(
            host="127.0.0.1", port=port, user="reader", password=PASSWORD, database="shop"
        )
        yield Filled(databases.fill_mongo(address), api, folder)


@contextmanager
def _sqlite(request: pytest.FixtureRequest) -> Iterator[Filled]:
    api, folder = _api(request)
    path = folder / "fetcher-data" / "sources" / "things.db"
    yield Filled(databases.fill_sqlite(path), api, folder)


@contextmanager
def _sqlserver(request: pytest.FixtureRequest) -> Iterator[Filled]:
    with served_rows() as served:
        yield Filled(
            served.body,
            *_api(request),
            sent=lambda: {_line(text, map(repr, values)) for text, values in served.asked},
        )


@contextmanager
def _oracle(request: pytest.FixtureRequest) -> Iterator[Filled]:
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    folder = factory.mktemp("oracle")
    log = folder / "statements.jsonl"
    body = {
        "type": SourceType.ORACLE,
        "host": "192.0.2.7",
        "port": 1521,
        "databaseName": "none",
        "userName": "hr",
        "password": PASSWORD,
        "metadata": {"serviceName": "ORDERS"},
    }

    def sent() -> set[str]:
        lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        return {_line(text, [*values, *types]) for text, values, types in lines}

    with embedded(
        folder,
        module="tests.operators.oracle_service",
        PYTHONPATH=str(ROOT),
        ORACLE_STATEMENTS=str(log),
    ) as (_, api):
        yield Filled(body, api, folder, sent)


_FILLED: Mapping[SourceType, Callable[[pytest.FixtureRequest], AbstractContextManager[Filled]]] = {
    SourceType.POSTGRESQL: _postgres,
    SourceType.MYSQL: _mariadb,
    SourceType.MONGODB: _mongo,
    SourceType.SQLITE: _sqlite,
    SourceType.SQL_SERVER: _sqlserver,
    SourceType.ORACLE: _oracle,
}


@pytest.fixture(scope="module", params=_FILLED)
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    """A database with the rows, registered under some names."""
    kind: SourceType = request.param
    with _FILLED[kind](request) as filled:
        names = [f"{kind.lower()}_{number}" for number in range(BUNDLE)]
        for name in names:
            made = filled.api.connect({"configName": name, **filled.body})
            assert made.status == 201, made.body
        yield Asked(Source(filled.api, filled.folder, names), kind, filled.sent)


def test_every_operator_gives_the_same_rows(asked: Asked) -> None:
    found = asked.source.rows([spelled(case.where, asked.kind) for case in CASES])
    wrong = [
        (case.where, outcome.ids, outcome.error, case.expected(asked.kind))
        for case, outcome in zip(CASES, found, strict=True)
        if outcome.ids != case.expected(asked.kind)
    ]
    assert wrong == []
    if asked.sent is not None:
        assert asked.sent() == _golden(asked.kind)


def _golden(kind: SourceType) -> set[str]:
    """What the unit tests hold against the golden files."""
    lines = set()
    for case in CASES:
        text, values, types = STATEMENTS[kind](case.where)
        # what TDS declares is the driver's: there the values alone tell their types
        facts = types if kind is SourceType.ORACLE else ()
        lines.add(_line(text, [*map(repr, values), *facts]))
    return lines


def _line(text: str, facts: object) -> str:
    assert isinstance(facts, map | list)
    return json.dumps([text, *facts])


def test_what_is_no_value_of_the_column_fails_the_job_and_names_it(asked: Asked) -> None:
    refused = [case for case in BAD_VALUES if asked.kind not in case.taken_by]
    found = asked.source.one_by_one([case.where for case in refused])
    start = f"{asked.source.names[0]}: query failed: invalid filter"
    wrong = [
        (case.where, outcome)
        for case, outcome in zip(refused, found, strict=True)
        if outcome.error.get("message", "").lower()
        not in (f"{start} value (things.{case.column})", f"{start} (things.{case.column})")
    ]
    assert wrong == []


def test_malformed_filters_are_bad_requests_with_the_members_path(asked: Asked) -> None:
    wrong = []
    for case in BAD_REQUESTS:
        answer = asked.source.post([case.where])
        path = f"dataRequest.filters.{asked.source.names[0]}.things.{case.path}"
        if answer.status != 400 or path not in answer.body["message"]:
            wrong.append((case.where, answer.status, answer.body))
    assert wrong == []


def test_values_and_names_inject_nothing(asked: Asked) -> None:
    """Case 11: every value is data, an unknown identifier is an error, all rows are still there."""
    found = asked.source.rows([{"name": condition} for condition in ATTEMPTS])
    assert [outcome.ids for outcome in found] == [()] * len(ATTEMPTS)
    for name in IDENTIFIERS:
        unknown = asked.source.one_by_one([{name: {"eq": [1]}}])[0]
        assert unknown.ids is None
        assert "schema mismatch: missing fields" in unknown.error["message"]
    everything = asked.source.rows([{"id": {"gt": [0]}}])[0]
    assert everything.ids == tuple(row.id for row in ROWS)


def test_a_star_is_every_column_and_a_field_asked_twice_counts_once(asked: Asked) -> None:
    """Case 22, as far as the data source decides it."""
    one = {"id": {"eq": [1]}}
    own_key = {"_id"} if asked.kind is SourceType.MONGODB else set()
    (row,) = asked.source.whole_rows(["id", "id"], one)
    assert {name.lower() for name in row} == {"id"} | own_key
    if asked.sent is None:  # the imitations give ids alone
        (row,) = asked.source.whole_rows(["*"], one)
        assert set(row) == {*COLUMNS} | own_key
        assert (row["name"], row["big"], row["price"]) == (
            "open",
            9007199254740993,
            PRICE[asked.kind],
        )


PRICE = dict.fromkeys(_FILLED, "10.50") | {SourceType.SQLITE: 10.5}
"""SQLite keeps no decimals: a fraction is a float there, whatever its column is declared as."""


def test_a_filter_on_what_is_not_asked_for_is_a_bad_request(asked: Asked) -> None:
    """Case 23, as far as names of the data source decide it."""
    name, table = asked.source.names[0], asked.source.table
    for filters, path in (
        ({name: {"others": {"id": {"eq": [1]}}}}, f"dataRequest.filters.{name}.others"),
        ({"nobody": {table: {"id": {"eq": [1]}}}}, "dataRequest.filters.nobody"),
    ):
        answer = asked.source.api.post_job({name: {table: ["id"]}}, filters)
        assert answer.status == 400
        assert path in answer.body["message"]
