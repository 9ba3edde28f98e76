"""Every operator on every database, from HTTP to the opened result (design section 7)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from fetcher.domain.connections import SourceType
from tests.e2e.cluster import Api, embedded
from tests.integration.datasources.mongo_server import make_users, running_server
from tests.operators import databases
from tests.operators.asking import BUNDLE, Source
from tests.operators.cases import CASES, spelled
from tests.operators.refusals import BAD_REQUESTS, BAD_VALUES
from tests.servers.addresses import SqlAddress

DATABASES = (
    SourceType.POSTGRESQL,
    SourceType.MYSQL,
    SourceType.MONGODB,
    SourceType.SQLITE,
)
PASSWORD = "p@ss wörd%/?#:'\"\\"

Service = tuple[Api, Path]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One process for all of them."""
    folder = tmp_path_factory.mktemp("operators")
    with embedded(folder) as (_, api):
        yield api, folder


@pytest.fixture(scope="module", params=DATABASES)
def source(request: pytest.FixtureRequest, service: Service) -> Iterator[tuple[Source, SourceType]]:
    """A database with the rows, registered under its type's name."""
    api, folder = service
    kind: SourceType = request.param
    with _FILLED[kind](request, folder) as body:
        names = [f"{kind.lower()}_{number}" for number in range(BUNDLE)]
        for name in names:
            made = api.connect({"configName": name, **body})
            assert made.status == 201, made.body
        yield Source(api, folder, names), kind


@contextmanager
def _postgres(request: pytest.FixtureRequest, _: Path) -> Iterator[Mapping[str, object]]:
    address: SqlAddress = request.getfixturevalue("postgres")
    with databases.own_postgres(address) as own:
        yield databases.fill_postgres(own)


@contextmanager
def _mariadb(request: pytest.FixtureRequest, _: Path) -> Iterator[Mapping[str, object]]:
    with databases.filled_mariadb(request.getfixturevalue("mariadb")) as body:
        yield body


@contextmanager
def _mongo(_: pytest.FixtureRequest, folder: Path) -> Iterator[Mapping[str, object]]:
    data = folder / "mongo"
    with running_server(data, is_kept=True) as port:
        make_users(port, [("reader", PASSWORD, "admin")])
    with running_server(data, auth=True) as port:
        yield databases.fill_mongo(
            SqlAddress(
                host="127.0.0.1", port=port, user="reader", password=PASSWORD, database="shop"
            )
        )


@contextmanager
def _sqlite(_: pytest.FixtureRequest, folder: Path) -> Iterator[Mapping[str, object]]:
    yield databases.fill_sqlite(folder / "fetcher-data" / "sources" / "things.db")


Filled = AbstractContextManager[Mapping[str, object]]

_FILLED: Mapping[SourceType, Callable[[pytest.FixtureRequest, Path], Filled]] = {
    SourceType.POSTGRESQL: _postgres,
    SourceType.MYSQL: _mariadb,
    SourceType.MONGODB: _mongo,
    SourceType.SQLITE: _sqlite,
}


def test_every_operator_gives_the_same_rows(source: tuple[Source, SourceType]) -> None:
    asked, kind = source
    found = asked.rows([spelled(case.where, kind) for case in CASES])
    wrong = [
        (case.where, outcome.ids, outcome.error, case.expected(kind))
        for case, outcome in zip(CASES, found, strict=True)
        if outcome.ids != case.expected(kind)
    ]
    assert wrong == []


def test_what_is_no_value_of_the_column_fails_the_job_and_names_it(
    source: tuple[Source, SourceType],
) -> None:
    asked, kind = source
    refused = [case for case in BAD_VALUES if kind not in case.taken_by]
    found = asked.one_by_one([case.where for case in refused])
    wanted = f"{asked.names[0]}: query failed: invalid filter value ({asked.table}.{{}})"
    wrong = [
        (case.where, outcome)
        for case, outcome in zip(refused, found, strict=True)
        if outcome.error.get("message") != wanted.format(case.column)
    ]
    assert wrong == []


def test_malformed_filters_are_bad_requests_with_the_members_path(
    source: tuple[Source, SourceType],
) -> None:
    asked, _ = source
    wrong = []
    for case in BAD_REQUESTS:
        answer = asked.post([case.where])
        path = f"dataRequest.filters.{asked.names[0]}.{asked.table}.{case.path}"
        if answer.status != 400 or path not in answer.body["message"]:
            wrong.append((case.where, answer.status, answer.body))
    assert wrong == []
