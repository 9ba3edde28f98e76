"""What a run was measured on: one JSON line, ``python -m benchmarks.machine``."""

import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql  # type: ignore[import-untyped] # its stubs are no dependency
from psycopg.conninfo import make_conninfo

from benchmarks.mysql_tables import server as mysql_server
from benchmarks.postgresql_tables import server as postgresql_server
from benchmarks.sizes import LARGE_ROWS, ROWS

FIGURE: Final = "machine"
PACKAGES: Final = (
    *("psycopg", "pymysql", "pymongo", "orjson", "pybase64", "cryptography", "trio"),
    *("trio-asyncio", "aioboto3"),
)


def main() -> None:
    print(json.dumps(facts()), flush=True)


def facts() -> dict[str, Any]:
    return {
        "figure": FIGURE,
        "measured_at": datetime.now(UTC).isoformat(timespec="minutes"),
        "cores": os.cpu_count(),
        "cpu": next(_values(Path("/proc/cpuinfo"), "model name"), platform.machine()),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "rows": ROWS,
        "large_rows": LARGE_ROWS,
        "servers": {"PostgreSQL": _postgresql(), "MariaDB": _mariadb()},
        "packages": {name: version(name) for name in PACKAGES},
    }


def _values(path: Path, key: str) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            yield value.strip()


def _postgresql() -> str:
    with psycopg.connect(make_conninfo("", **postgresql_server())) as database:
        found = database.execute("SHOW server_version").fetchone()
    return str(found[0]) if found else ""


def _mariadb() -> str:
    with pymysql.connect(**mysql_server()) as database, database.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return str(cursor.fetchone()[0])


if __name__ == "__main__":
    main()
