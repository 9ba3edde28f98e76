"""Rows as the drivers hand them over, or as they lie in a packet, and what is made of them."""

import json
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from unittest.mock import Mock

import bson
import trio

from fetcher.adapters.mongo.job_documents import job_document
from fetcher.compat.plugin_crm import ENCRYPTED_PATHS
from fetcher.datasources.mongodb.bson_json import BsonWriter, CellTooLarge, document_starts
from fetcher.datasources.mongodb.bson_walk import InvalidText, MalformedBson
from fetcher.datasources.mysql.fenced_packets import FENCE, FencedPackets
from fetcher.datasources.mysql.packets import MalformedPacket, RowPackets
from fetcher.datasources.mysql.query import TableQuery as MysqlQuery
from fetcher.datasources.mysql.row_texts import RowTexts
from fetcher.datasources.mysql.strict_json import is_json
from fetcher.datasources.mysql.types import BROKEN
from fetcher.datasources.oracle.query import Selected
from fetcher.datasources.oracle.query import TableQuery as OracleQuery
from fetcher.datasources.oracle.rendering import ValueRenderer as OracleRenderer
from fetcher.datasources.oracle.rows import TableReader
from fetcher.datasources.oracle.types import ColumnType, Kind
from fetcher.datasources.plugin_crm.opening import OpeningWriter
from fetcher.datasources.postgresql.query import TableQuery as PostgresqlQuery
from fetcher.datasources.postgresql.rows import CopyReader
from fetcher.datasources.sqlite.errors import UNREADABLE
from fetcher.datasources.sqlite.query import TableQuery as SqliteQuery
from fetcher.datasources.sqlite.rows import TableRows
from fetcher.datasources.sqlite.types import ValueRenderer as SqliteRenderer
from fetcher.datasources.sqlserver.link import Statement
from fetcher.datasources.sqlserver.query import TableQuery as SqlserverQuery
from fetcher.datasources.sqlserver.rendering import Renderer
from fetcher.datasources.sqlserver.rows import RowReader
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import SourceFailure
from tests.contract.records.builders import a_job
from tests.fuzz.decoders.decoder import Decoder, in_file, text_of
from tests.unit.datasources.plugin_crm.sealing import ANA, KEYS
from tests.unit.datasources.sqlserver.test_filters import a_column

_CELL_BYTES: Final = 100
_FOREIGN: Final = (ValueError, LookupError, ArithmeticError)
"""What no server sends to whom our statement was sent: the session, in whose thread it is found,
makes a SourceFailure of it as of whatever the driver raises."""
_MESSAGE: Final = b"<|>"
"""Between two messages of a COPY, or two values of a row."""
_COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_MYSQL: Final = MysqlQuery(
    name="t", fields=("a", "j", "k"), statement="", filtered=(), unchecked_json=("j", "k")
)
_SQLITE: Final = SqliteQuery(
    name="t", fields=("a", "b", "c"), statement="SELECT a, b, c FROM t", values=()
)
_SQLSERVER_TYPES: Final = (
    *("tinyint", "bigint", "bit", "decimal", "money", "real", "float", "char", "text", "date"),
    *("uniqueidentifier", "binary", "image", "time", "datetime", "smalldatetime", "xml", None),
    *("datetimeoffset", "sql_variant", "sql_variant", "sql_variant"),
)


def decoders() -> dict[str, Decoder]:
    return {**_mongodb(), **_mysql(), **_others()}


def _mongodb() -> dict[str, Decoder]:
    documents = [{"_id": 1, "a": {"b": [1.5, None, "x"]}, "c": b"\0\1", "d": True}]
    sealed = [{"document": ANA, "contact": {"primary_email": ANA}, "name": "", "a": [b"\0", 1]}]
    refusals = (MalformedBson, InvalidText, CellTooLarge)
    return {
        "rows of MongoDB": Decoder(
            seeds=[b"".join(map(bson.encode, documents)), bson.encode(job_document(a_job()))],
            decode=lambda data: _bson(BsonWriter(JobOptions(), max_cell_bytes=1 << 20), data),
            refusals=refusals,
        ),
        "rows of the CRM": Decoder(
            seeds=[bson.encode(each) for each in sealed],
            decode=_crm,
            refusals=(*refusals, SourceFailure),
        ),
    }


def _mysql() -> dict[str, Decoder]:
    row = FENCE.join([b"", b'{"a":"x\x01","j":', b"[1]", b',"k":', b"{", b"}", b""])
    broken = FENCE.join([b"", b'{"a":' + BROKEN + b"ff00", b"1", b"", b"2", b"}", b""])
    odd = BROKEN + b"greek:C3"
    ended = b"\xfe\0\0\2\0"
    return {
        "rows of MySQL": Decoder(
            seeds=[
                _packet(1, b'\x07{"a":1}')
                + _packet(2, b"\xfc\x05\0hello")
                + _packet(3, b"\xfb")
                + _packet(4, ended),
                _packet(1, b"\x01x") + _packet(2, b"\xff\x15\x04#28000refused"),
            ],
            decode=_mysql_rows,
            refusals=(MalformedPacket, _driver_error()),
        ),
        "fenced rows of MySQL": Decoder(
            seeds=[
                b"".join(_packet(n, bytes((len(row),)) + row) for n in (1, 2)) + _packet(3, ended),
                _packet(1, bytes((len(broken),)) + broken) + _packet(2, ended),
                _packet(1, b"\x09\x01!5,20,30") + _packet(2, ended),
            ],
            decode=_fenced_rows,
            refusals=(MalformedPacket, SourceFailure, _driver_error(), *_FOREIGN),
        ),
        "texts of MySQL": Decoder(
            seeds=[
                row,
                broken,
                row.replace(b"[1]", b"[" + b"1," * 60 + b"2]"),
                row.replace(b'"x\x01"', odd),
                b"\x01!5,20,30",
            ],
            decode=_texts,
            refusals=(SourceFailure, *_FOREIGN),
        ),
        "JSON of MySQL": Decoder(
            seeds=[b' {"a": [1, -2.5e3, "\\u00e9\\n", true, null, {}], "b": 1e999} '],
            decode=is_json,
        ),
    }


def _others() -> dict[str, Decoder]:
    tuples = [b'{"a":"h\xc3\xa9","b":1}', b'{"a":"\x02","b":null}']
    copied = [_COPY_HEADER + _tuple(tuples[0]), _tuple(tuples[1]), b"\xff\xff"]
    latin = [_COPY_HEADER + _tuple(b'{"a":"\xe9","b":1}'), b"\xff\xff"]
    large = [_COPY_HEADER + _tuple(b"\x01!7,900"), b"\xff\xff"]
    unicode = "a\u00e9".encode("utf-16-le")
    sqlserver = (
        *(b"7", b"9007199254740993", b"1", b".50", b"-1.5", b"0.1", b"2.5", unicode, unicode),
        *(b"2031-04-05", b"A0", b"\0\1", b"\0", b"06:07:08.10", b"2031-04-05T06:07:08.1"),
        *(b"2031-04-05T06:07", unicode, b"\1", b"2031-04-05T06:07:08.1+05:45"),
        *(each.encode("utf-16-le") for each in ("int:7", "float:4004000000000000", "money:.5")),
    )
    oracle = (b"1.50", b"123", b"-.5", b"1E+20", b"x", b"2031-04-05T06:07:08.100", b'{"a":1}', b"9")
    return {
        "rows of PostgreSQL": Decoder(
            seeds=[_MESSAGE.join(each) for each in (copied, latin, large)],
            decode=lambda data: trio.run(_copy, data),
            refusals=(SourceFailure,),
        ),
        "rows of SQL Server": Decoder(
            seeds=[_MESSAGE.join(sqlserver)],
            decode=_sqlserver,
            refusals=(SourceFailure,),
        ),
        "rows of Oracle": Decoder(
            seeds=[_MESSAGE.join(oracle)],
            decode=_oracle,
            refusals=(SourceFailure, *_FOREIGN),
        ),
        "file of SQLite": Decoder(
            seeds=[_sqlite_file()],
            decode=in_file("t.db", lambda folder: _sqlite(folder / "t.db")),
            refusals=(SourceFailure, *UNREADABLE),
        ),
    }


def _bson(writer: BsonWriter | OpeningWriter, data: bytes) -> None:
    writer.rows(data, document_starts(data))


def _crm(data: bytes) -> None:
    inner = BsonWriter(JobOptions(), max_cell_bytes=1 << 20)
    _bson(OpeningWriter(inner, KEYS.cipher(), ENCRYPTED_PATHS, table="holders"), data)


def _pieces(data: bytes) -> list[bytes]:
    """As a network delivers them."""
    return [data[start : start + 7] for start in range(0, len(data), 7)]


def _mysql_rows(data: bytes) -> None:
    packets, rows = RowPackets(1), list[bytes | None]()
    for piece in _pieces(data):
        if packets.ended:
            return
        packets.feed(piece, rows)


def _fenced_rows(data: bytes) -> None:
    """Once in pieces and once at once: whatever way they come, as many rows."""
    counts = []
    for pieces in (_pieces(data), [data]):
        packets, texts = FencedPackets(1, _MYSQL.fences), RowTexts(_MYSQL, max_cell_bytes=100)
        found = [packets.cut(piece) for piece in pieces if not packets.ended]
        counts.append(sum(each.count for each in found))
        for each in found:
            texts.joined_cut(each)
    assert len(set(counts)) == 1


def _texts(data: bytes) -> None:
    for texts in (Texts(replaces=True), Texts()):
        RowTexts(_MYSQL, max_cell_bytes=_CELL_BYTES, texts=texts).joined([data])


def _tuple(row: bytes) -> bytes:
    return struct.pack("!hi", 1, len(row)) + row


class _Copied:
    """A session whose server has sent these messages, and says that it sent two rows or one."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = list(messages)
        self.pgconn = self
        self.command_tuples = max(1, len(messages) - 1)

    def get_copy_data(self, _: int) -> tuple[int, memoryview]:
        if not self._messages:
            return -1, memoryview(b"")
        message = memoryview(self._messages.pop(0))
        return len(message), message

    def take_input(self, *_: object, **__: object) -> None:
        pass

    async def wait_for_input(self, *_: object, **__: object) -> None:
        """libpq has no message of no bytes: it is as if there were none yet."""

    async def result(self, *_: object, **__: object) -> "_Copied":
        return self


async def _copy(data: bytes) -> None:
    for texts, codec in ((Texts(replaces=True), "cp1252"), (Texts(), "utf-8")):
        query = PostgresqlQuery(
            name="t", fields=("a", "b"), copy=b"", stored=b"", codec=codec, suspect=None
        )
        session = cast("Any", _Copied(data.split(_MESSAGE)))
        reader = CopyReader(session, query, max_batch_bytes=1 << 20, texts=texts)
        while await reader.next_batch() is not None:
            pass


def _values(data: bytes, count: int) -> list[bytes]:
    found = data.split(_MESSAGE)[:count]
    return found + [b""] * (count - len(found))


def _sqlserver_value(base_type: str | None, data: bytes) -> object:
    """As the driver gives it: numbers, bytes where we ask for bytes, else texts."""
    match base_type:
        case "tinyint" | "bigint":
            return int.from_bytes(data[:8], "little", signed=True)
        case "bit":
            return bool(data.strip(b"\0"))
        case "real":
            return struct.unpack("<f", data[:4].ljust(4))[0]
        case "float":
            return struct.unpack("<d", data[:8].ljust(8))[0]
        case "char" | "text" | "xml" | "sql_variant" | "binary" | "image" | None:
            return data
        case _:
            return text_of(data)


def _sqlserver(data: bytes) -> None:
    columns = tuple(map(a_column, _SQLSERVER_TYPES))
    query = SqlserverQuery(name="t", columns=columns, statement=Statement(""), suspect=None)
    values = map(_sqlserver_value, _SQLSERVER_TYPES, _values(data, len(columns)))
    row = list(values)
    for options in (JobOptions(), JobOptions(values="natural", bigint="string", decimals="number")):
        for texts in (Texts(replaces=True), Texts()):
            link = SimpleNamespace(limit_silence=lambda _: None, row=Mock(side_effect=[row, None]))
            reader = RowReader(
                cast("Any", SimpleNamespace(link=link, statement_seconds=1.0)),
                query,
                Renderer(options, texts),
                max_batch_bytes=1 << 20,
                max_cell_bytes=1 << 12,
            )
            rows: list[str] = []
            reader._fill(rows)
            batch = reader._encoded(rows)
            json.loads(b"[%b]" % batch.data)


_ORACLE_TYPES: Final = (
    ColumnType(kind=Kind.NUMBER, name="NUMBER", scale=2),
    ColumnType(kind=Kind.NUMBER, name="NUMBER", scale=0),
    ColumnType(kind=Kind.NUMBER, name="NUMBER"),
    ColumnType(kind=Kind.NUMBER, name="FLOAT"),
    ColumnType(kind=Kind.TEXT, name="VARCHAR2", max_bytes=40),
    ColumnType(kind=Kind.TIMESTAMP, name="TIMESTAMP"),
    ColumnType(kind=Kind.JSON, name="JSON"),
)


def _oracle(data: bytes) -> None:
    """Texts, as nearly all is asked for; the last value is the length of the one before it."""
    values = _values(data, len(_ORACLE_TYPES) + 1)
    row = [value.decode("utf-8", "surrogateescape") for value in values]
    selected = tuple(Selected(field=f"f{n}", type=each) for n, each in enumerate(_ORACLE_TYPES))
    query = OracleQuery(
        name="t",
        selected=selected,
        statement="",
        values=(),
        bind_types=(),
        fetch_rows=1,
        suspect=None,
    )
    for options in (JobOptions(), JobOptions(values="natural", bigint="string", decimals="number")):
        for texts in (Texts(replaces=True), Texts()):
            TableReader(
                cast("Any", None),
                query,
                OracleRenderer(options, texts),
                max_batch_bytes=1 << 20,
                max_cell_bytes=_CELL_BYTES,
            )._take([row])


def _sqlite_file() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE t (a TEXT, b BLOB, c)")
        rows = [("x\u00e9", b"\0\1", 2**60), ("y" * 90, None, 2.5), (None, b"", "z")]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
        return connection.serialize()


def _sqlite(path: Path) -> None:
    for texts in (Texts(replaces=True), Texts()):
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            rows = TableRows(
                _SQLITE,
                SqliteRenderer(JobOptions(), texts),
                batch_bytes=1 << 20,
                max_cell_bytes=1 << 12,
            )
            while rows.next_batch(connection) is not None:
                pass


def _packet(number: int, row: bytes) -> bytes:
    return len(row).to_bytes(3, "little") + bytes([number]) + row


def _driver_error() -> type[BaseException]:
    """What a server sends amid the rows, as the driver has it."""
    from pymysql.err import MySQLError  # type: ignore[import-untyped] # noqa: PLC0415 - as above

    error: type[BaseException] = MySQLError
    return error
