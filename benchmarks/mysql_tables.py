"""What the MariaDB figures are measured on, made once."""

import os
from typing import Any, Final

import pymysql  # type: ignore[import-untyped] # its stubs are no dependency

from benchmarks.sizes import LARGE_ROWS, LARGE_TABLE, ROWS, SCHEMA_TABLES, TABLE

DATABASE: Final = "fetcher_src_bench"
WIDE_DATABASE: Final = "fetcher_src_bench_wide"

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
CREATE TABLE {} (id int PRIMARY KEY, big bigint NOT NULL, amount decimal(14,2) NOT NULL,
 name varchar(100) NOT NULL, created datetime(6) NOT NULL, active tinyint(1) NOT NULL,
 uid char(36) NOT NULL, doc json NOT NULL, score double, day date NOT NULL) CHARACTER SET utf8mb4
"""

_ROWS: Final = """
INSERT INTO {} SELECT i, 9007199254740993 + i, (i % 1000000) / 100.0 + 0.5,
 concat('customer number ', i, ' "quoted" héllo'),
 timestamp'2031-01-01 00:00:00.123456' + interval (i * 1.5) second, i % 3 = 0,
 insert(insert(insert(insert(md5(i), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-'),
 json_object('k', i, 'tags', json_array('a', 'b'), 'v', i * 1.10),
 if(i % 10 <> 0, sqrt(i), NULL), date'2031-01-01' + interval (i % 3650) day
FROM (SELECT seq AS i FROM seq_1_to_{}) AS numbers
"""

_LARGE: Final = "CREATE TABLE {} (id int PRIMARY KEY, body longtext NOT NULL) CHARACTER SET utf8mb4"
_LARGE_ROWS: Final = """
INSERT INTO {} SELECT i, repeat(concat(md5(i), '"é', char(10)), 28728)
FROM (SELECT seq AS i FROM seq_1_to_{}) AS numbers
"""
"""A row is 1 MiB and a little."""

_WIDE: Final = (
    "CREATE TABLE t{} (id int PRIMARY KEY, a text, b decimal(10,2), c date, d datetime,"
    " e tinyint(1), f char(36), g json, h bigint, i double)"
)


def server() -> dict[str, Any]:
    """The driver's keywords, from ``FETCHER_BENCH_MARIADB_HOST`` and its companions."""
    return {
        "host": os.environ.get("FETCHER_BENCH_MARIADB_HOST", "127.0.0.1"),
        "port": int(os.environ.get("FETCHER_BENCH_MARIADB_PORT", "3306")),
        "user": os.environ.get("FETCHER_BENCH_MARIADB_USER", "root"),
        "password": os.environ.get("FETCHER_BENCH_MARIADB_PASSWORD", ""),
    }


def prepare() -> None:
    """Make databases and tables where they are not there yet."""
    with pymysql.connect(**server(), autocommit=True) as admin, admin.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        cursor.execute(f"USE {DATABASE}")
        for table, create, fill, rows in (
            (TABLE, _TABLE, _ROWS, ROWS),
            (LARGE_TABLE, _LARGE, _LARGE_ROWS, LARGE_ROWS),
        ):
            if not cursor.execute("SHOW TABLES LIKE %s", [table]):
                cursor.execute(create.format(table))
                cursor.execute(fill.format(table, rows))
                cursor.execute(f"ANALYZE TABLE {table}")
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {WIDE_DATABASE}")
        cursor.execute(f"USE {WIDE_DATABASE}")
        found = {name for (name,) in cursor.fetchall()} if cursor.execute("SHOW TABLES") else set()
        for number in range(1, SCHEMA_TABLES + 1):
            if f"t{number}" not in found:
                cursor.execute(_WIDE.format(number))
