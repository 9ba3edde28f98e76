"""What the PostgreSQL figures are measured on, made once."""

import os
from typing import Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.sizes import LARGE_ROWS, LARGE_TABLE, ROWS, TABLE

DATABASE: Final = "fetcher_src_bench"

COLUMNS: Final = (
    "active",
    "amount",
    "big",
    "created",
    "day",
    "doc",
    "id",
    "name",
    "score",
    "uid",
)

_TABLE: Final = """
CREATE TABLE {} AS SELECT
 i AS id,
 9007199254740993 + i::bigint AS big,
 ((i % 1000000) / 100.0 + 0.5)::numeric(14, 2) AS amount,
 'customer number ' || i || ' "quoted" héllo' AS name,
 timestamptz '2031-01-01 00:00:00.123456+00' + i * interval '1.5 second' AS created,
 i % 3 = 0 AS active,
 md5(i::text)::uuid AS uid,
 jsonb_build_object('k', i, 'tags', jsonb_build_array('a', 'b'), 'v', i * 1.10) AS doc,
 CASE WHEN i % 10 <> 0 THEN sqrt(i) END AS score,
 date '2031-01-01' + i % 3650 AS day
FROM generate_series(1, {}) i
"""

_LARGE: Final = """
CREATE TABLE {} AS SELECT i AS id, repeat(md5(i::text) || '"é' || E'\\n', 28728) AS body
FROM generate_series(1, {}) i
"""
"""A row is 1 MiB and a little."""

_SCHEMA: Final = """DO $$ BEGIN
 CREATE SCHEMA wide;
 FOR n IN 1..5000 LOOP
  EXECUTE format('CREATE TABLE wide.t%s (id int PRIMARY KEY, a text, b numeric(10,2), c date,
   d timestamptz, e boolean, f uuid, g jsonb, h bigint, i double precision)', n);
  IF n % 500 = 0 THEN COMMIT; END IF;
 END LOOP;
END $$"""


def server() -> dict[str, str]:
    """libpq's keywords of the server, from ``FETCHER_BENCH_POSTGRES_DSN``."""
    dsn = os.environ.get(
        "FETCHER_BENCH_POSTGRES_DSN", "host=127.0.0.1 user=postgres dbname=postgres"
    )
    keywords = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    return {"host": "127.0.0.1", "port": "5432", "user": "postgres", **keywords}


def conninfo() -> str:
    return make_conninfo("", **{**server(), "dbname": DATABASE})


def prepare() -> None:
    """Make database, tables and the schema ``wide`` where they are not there yet."""
    with psycopg.connect(make_conninfo("", **server()), autocommit=True) as admin:
        found = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
        if found.fetchone() is None:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    with psycopg.connect(conninfo(), autocommit=True) as database:
        for table, statement, rows in ((TABLE, _TABLE, ROWS), (LARGE_TABLE, _LARGE, LARGE_ROWS)):
            found = database.execute("SELECT to_regclass(%s)", [table])
            if found.fetchone() == (None,):
                name = sql.Identifier(table)
                database.execute(sql.SQL(statement).format(name, sql.Literal(rows)))
                database.execute(sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(name))
                database.execute(sql.SQL("VACUUM ANALYZE {}").format(name))
        if database.execute("SELECT to_regnamespace('wide')").fetchone() == (None,):
            database.execute(_SCHEMA)
            database.execute("VACUUM ANALYZE pg_catalog.pg_attribute")
