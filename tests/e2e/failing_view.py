"""A view that its server fails at while rows are read."""

from collections.abc import Callable

import psycopg
import pytest

from tests.servers.addresses import SqlAddress

ROW = "row-value-91c2"


@pytest.fixture
def broken(postgres_database: Callable[[], SqlAddress]) -> SqlAddress:
    """``numbers`` with id, t and n; the server's text about it holds :data:`ROW`."""
    address = postgres_database()
    with psycopg.connect(address.conninfo, autocommit=True) as database:
        database.execute("CREATE TABLE texts (id int, t text)")
        database.execute("INSERT INTO texts VALUES (1, '1'), (2, %s)", [ROW])
        database.execute("CREATE VIEW numbers AS SELECT id, t, t::int AS n FROM texts")
    return address
