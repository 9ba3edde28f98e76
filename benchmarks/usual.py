"""How it is usually written: ``python -m benchmarks.usual SOURCE`` (a process of its own).

The driver's rows as dictionaries, ``json.dumps``, a digest, one AES-GCM ciphertext, one file. It
does less than a job: no base64, no signature, values as ``str`` makes them, nothing is limited.
Prints one JSON object: rows, seconds, CPU seconds, peak memory of the process.
"""

import hashlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from benchmarks.sizes import TABLE

KEY: Final = bytes(range(32))

Rows = Sequence[dict[str, Any]]


def _postgresql() -> Rows:
    import psycopg  # noqa: PLC0415 - a process holds the one driver that it needs
    from psycopg.rows import dict_row  # noqa: PLC0415 - the same

    from benchmarks.postgresql_tables import conninfo  # noqa: PLC0415 - the same

    with psycopg.connect(conninfo(), row_factory=dict_row) as database:
        return database.execute(f"SELECT * FROM {TABLE}".encode()).fetchall()


def _mysql() -> Rows:
    import pymysql  # type: ignore[import-untyped] # noqa: PLC0415 - its stubs are no dependency

    from benchmarks.mysql_tables import DATABASE, server  # noqa: PLC0415 - the same

    dictionaries = pymysql.cursors.DictCursor
    connecting = pymysql.connect(**server(), database=DATABASE, cursorclass=dictionaries)
    with connecting as database, database.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {TABLE}")
        rows: Rows = cursor.fetchall()
        return rows


def _mongodb() -> Rows:
    import pymongo  # noqa: PLC0415 - the same

    from benchmarks.mongodb_replay import DATABASE, PORT_VARIABLE  # noqa: PLC0415 - the same

    address = f"mongodb://127.0.0.1:{os.environ[PORT_VARIABLE]}/"
    with pymongo.MongoClient[dict[str, Any]](address) as client:
        return client[DATABASE][TABLE].find().to_list()


DRIVERS: Final[dict[str, Callable[[], Rows]]] = {
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mongodb": _mongodb,
}


def main(source: str) -> None:
    started, cpu = time.perf_counter(), time.process_time()
    rows = DRIVERS[source]()
    text = json.dumps({"src": {TABLE: rows}}, default=str).encode()
    digest = hashlib.sha256(text).hexdigest()
    sealed = AESGCM(KEY).encrypt(os.urandom(12), text, None)
    with tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder:
        (Path(folder) / digest).write_bytes(sealed)
    measured = {
        "rows": len(rows),
        "seconds": round(time.perf_counter() - started, 3),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main(sys.argv[1])
