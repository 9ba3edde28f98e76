"""`fetcher demo` with a PostgreSQL beside its own shop."""

import os
import subprocess
import sys
from collections.abc import Callable

import psycopg

from tests.servers.addresses import SqlAddress


def demo(conninfo: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fetcher", "demo"],
        env=os.environ | {"FETCHER_DEMO_POSTGRES_DSN": conninfo},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_demo_extracts_from_postgresql_too(postgres_database: Callable[[], SqlAddress]) -> None:
    address = postgres_database()
    ended = demo(address.conninfo)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "demo: OK" in ended.stdout
    assert "parcels" in ended.stdout
    with psycopg.connect(address.conninfo) as database:
        left = database.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fetcher_demo_%'"
        ).fetchall()
    assert left == []


def test_unusable_postgresql_is_told_in_words() -> None:
    ended = demo("postgresql://nobody@127.0.0.1:1/nothing")
    assert ended.returncode == 1
    assert "demo: FAILED FETCHER_DEMO_POSTGRES_DSN: " in ended.stdout
    assert "Traceback" not in ended.stderr
