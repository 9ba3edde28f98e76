"""The demo's second source, where FETCHER_DEMO_POSTGRES_DSN names a PostgreSQL."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

CONFIG_NAME = "shop_warehouse"
PARCELS = 5_000
CONNECT_SECONDS = 5


CREATE_PARCELS = SQL("""
CREATE TABLE {}.parcels (
  id bigint PRIMARY KEY, tracking uuid NOT NULL, weight_kg numeric(12, 4) NOT NULL,
  sent_at timestamptz, insured boolean NOT NULL, label jsonb, note text
)""")
FILL_PARCELS = SQL("""
INSERT INTO {}.parcels
SELECT 9007199254740993 + n, gen_random_uuid(), n * 0.1000::numeric,
       CASE WHEN mod(n, 6) > 0
         THEN timestamptz '2026-03-14 09:26:53.5+05:45' + n * interval '1 min' END,
       mod(n, 2) = 0, jsonb_build_object('n', n, 'price', 1.10),
       CASE WHEN mod(n, 4) = 0 THEN 'Größe ☃' END
FROM generate_series(1, %s) AS n""")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """How Fetcher reaches a schema of our own in that database."""

    connection: dict[str, Any]


@contextmanager
def warehouse(dsn: str) -> Iterator[Warehouse]:
    """Create the schema, with exact numbers and zones; drop it at the end."""
    schema = f"fetcher_demo_{secrets.token_hex(4)}"
    with psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_SECONDS) as database:
        database.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        try:
            database.execute(CREATE_PARCELS.format(Identifier(schema)))
            database.execute(FILL_PARCELS.format(Identifier(schema)), [PARCELS])
            yield Warehouse(connection_body(dsn, database, schema))
        finally:
            database.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))


def connection_body(dsn: str, database: psycopg.Connection[Any], schema: str) -> dict[str, Any]:
    words = conninfo_to_dict(dsn)
    info = database.info
    return {
        "configName": CONFIG_NAME,
        "type": "POSTGRESQL",
        "host": info.hostaddr or str(words.get("host", "127.0.0.1")),
        "port": info.port,
        "databaseName": info.dbname,
        "schema": schema,
        "userName": info.user,
        # A server that trusts its neighbours takes any password; the API asks for one.
        "password": str(words.get("password") or "none"),
    }
