"""``python -m tests.operators.oracle_service --role=all``: the real command with a fake driver.

Only the driver's edge is ours: `oracledb.connect`, and the dialling before it. What the connector
executes is carried out over the rows, and written to the file that ``ORACLE_STATEMENTS`` names, a
line of JSON each: the text, and what is bound as what.
"""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import oracledb

from fetcher.cli.app import main
from fetcher.datasources.oracle import connect
from tests.operators.evaluation import OracleRows
from tests.operators.rows import COLUMNS, TABLE
from tests.operators.statements import ORACLE_TYPES
from tests.unit.datasources.oracle.fake_driver import (
    Answer,
    FakeConnection,
    FakeCursor,
    FakeDatabase,
    Row,
    a_catalogue,
)

LOG = Path(os.environ["ORACLE_STATEMENTS"])
ROWS = OracleRows()
WRITING = threading.Lock()


class Cursor(FakeCursor):
    def execute(self, statement: str, values: Sequence[object] = ()) -> None:
        super().execute(statement, values)
        if f'FROM "HR"."{TABLE.upper()}"' in statement:
            types = [each.name.removeprefix("DB_TYPE_").lower() for each in self.input_sizes]
            with WRITING, LOG.open("a", encoding="utf-8") as log:
                line = [statement, [repr(value) for value in values], types]
                log.write(f"{json.dumps(line)}\n")
            found = ROWS.ids(statement, values)
            # numbers are asked for as texts
            self._answer = Answer("", [(str(each),) for (each,) in found])


class Connection(FakeConnection):
    def cursor(self) -> FakeCursor:
        return Cursor(self)


class Database(FakeDatabase):
    def connect(self, **keywords: object) -> FakeConnection:
        super().connect(**keywords)
        return Connection(self)


def catalogue() -> list[Row]:
    return [
        ("HR", TABLE.upper(), name.upper(), type_name, None, size, precision, scale, "Y")
        for name in COLUMNS
        for type_name, size, precision, scale in (ORACLE_TYPES[name],)
    ]


if __name__ == "__main__":
    database = Database(answers=a_catalogue(catalogue()))
    vars(oracledb)["connect"] = database.connect
    vars(connect)["dial"] = database.dial
    main()
