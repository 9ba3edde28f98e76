"""SQL Server's and Oracle's conditions, evaluated: neither server runs here.

The connectors' own statements are carried out by SQLite over the same rows, with the few functions
that they use written anew by their documentation. Every value is stored and compared in a text
whose order is the type's own, so that nothing is decided by SQLite's types.
"""

import re
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Final, TypeAlias
from uuid import UUID

from tests.operators.rows import COLUMNS, ROWS, TABLE, Thing

Key: TypeAlias = str | int | float | bytes | None

_EXACT: Final = Context(prec=120)
_OFFSET: Final = Decimal(10) ** 40


def number_key(value: int | float | Decimal) -> str:
    """A text that sorts as the number does, exact to 40 digits on both sides of the point."""
    return f"{_EXACT.add(_OFFSET, Decimal(value)):082.40f}"


def moment_key(value: datetime) -> str:
    return f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}000"


class _Rows:
    """The rows in SQLite; one thread at a time."""

    def __init__(self, keys: Callable[[Thing], Mapping[str, object]], name_type: str) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.create_collation("IGNORING", _ignoring)
        types = {"name": name_type}
        columns = ", ".join(f'"{name}" {types.get(name, "")}' for name in COLUMNS)
        self._database.execute(f"CREATE TABLE {TABLE} ({columns})")
        marks = ", ".join("?" * len(COLUMNS))
        for row in ROWS:
            found = keys(row)
            values = [None if found[name] is None else found[name] for name in COLUMNS]
            self._database.execute(f"INSERT INTO {TABLE} VALUES ({marks})", values)

    def close(self) -> None:
        self._database.close()

    def function(self, name: str, count: int, called: Callable[..., Key]) -> None:
        self._database.create_function(name, count, called, deterministic=True)

    def ids(self, statement: str, values: Sequence[object]) -> list[tuple[int]]:
        """Values by their numbers: ``?1``."""
        with self._lock:
            found = self._database.execute(statement, list(values)).fetchall()
        return [(int(Decimal(key) - _OFFSET),) for (key,) in found]


def _ignoring(left: str, right: str) -> int:
    """A collation that ignores case, and spaces at the end."""
    one, other = left.rstrip(" ").casefold(), right.rstrip(" ").casefold()
    return (one > other) - (one < other)


# --- SQL Server -----------------------------------------------------------------------------


class SqlServerRows:
    """Carries out the SELECTs of the connector over ``dbo.things``."""

    def __init__(self) -> None:
        self._rows = _Rows(_sqlserver_keys, "TEXT COLLATE IGNORING")
        self._rows.function("converted", -1, _converted)
        self._rows.function("like", 3, _sqlserver_like)

    def close(self) -> None:
        self._rows.close()

    def ids(self, statement: str, values: Sequence[object]) -> list[tuple[int]]:
        text = statement.replace("[dbo].", "").replace("N'", "'").replace("OPENJSON(", "json_each(")
        text = re.sub(r"COLLATE Latin1_General_CI_AS", "COLLATE IGNORING", text)
        text = re.sub(r"CONVERT\((\w+(?:\([^()]*\))?), ", r"converted('\1', ", text)
        return self._rows.ids(re.sub(r"@P(\d+)", r"?\1", text), values)


def _sqlserver_keys(row: Thing) -> Mapping[str, object]:
    keys = _common_keys(row)
    if row.flag is not None:
        keys["flag"] = int(row.flag)
    if row.token is not None:
        keys["token"] = _uniqueidentifier(str(row.token))
    return keys


def _converted(kind: str, value: object, style: int = 0) -> Key:
    """What ``CONVERT`` makes of a text; the styles are those that the texts are in."""
    name = kind.partition("(")[0]
    assert style == _STYLES.get(name, 0)
    return _READERS[name](kind, str(value))


def _bigint(_: str, text: str) -> Key:
    assert -(2**63) <= int(text) < 2**63
    return number_key(int(text))


def _decimal(kind: str, text: str) -> Key:
    scale = int(kind.partition(",")[2].strip(" )"))
    assert Decimal(text) == round(Decimal(text), scale)
    return number_key(Decimal(text))


def _offset(_: str, text: str) -> Key:
    assert text.endswith("Z")
    return _written(text[:-1])


_STYLES: Final = {"varbinary": 2, "date": 23, "datetime2": 126, "datetimeoffset": 127}
_READERS: Final[Mapping[str, Callable[[str, str], Key]]] = {
    "bigint": _bigint,
    "decimal": _decimal,
    "float": lambda _, text: float(text),
    "bit": lambda _, text: int(text),
    "uniqueidentifier": lambda _, text: _uniqueidentifier(text),
    "varbinary": lambda _, text: bytes.fromhex(text),
    "date": lambda _, text: date.fromisoformat(text).isoformat(),
    "datetime2": lambda _, text: _written(text),
    "datetimeoffset": _offset,
}


def _written(text: str) -> str:
    whole, _, fraction = text.partition(".")
    return f"{datetime.fromisoformat(whole).isoformat()}.{fraction:0<9}"


def _uniqueidentifier(text: str) -> str:
    """In the server's order: the last group counts most, within the first three the last byte."""
    one, two, three, four, five = str(UUID(text)).split("-")
    return "".join([five, four, *(bytes.fromhex(each)[::-1].hex() for each in (three, two, one))])


def _sqlserver_like(pattern: str, text: str | None, escape: str) -> bool | None:
    """Brackets are sets, the escape makes a character of what follows, case is ignored."""
    if text is None:
        return None
    expression, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            expression += re.escape(pattern[at])
        elif character == "[":
            end = pattern.index("]", at)
            expression += pattern[at : end + 1]
            at = end
        else:
            expression += {"%": ".*", "_": "."}.get(character, re.escape(character))
        at += 1
    return re.fullmatch(expression, text, re.DOTALL | re.IGNORECASE) is not None


# --- Oracle ---------------------------------------------------------------------------------


class OracleRows:
    """Carries out the SELECTs of the connector over ``HR.THINGS``."""

    def __init__(self) -> None:
        self._rows = _Rows(_oracle_keys, "TEXT")
        self._rows.function("to_timestamp", 2, _oracle_timestamp)
        self._rows.function("to_timestamp_tz", 2, _oracle_timestamp)
        self._rows.function("like", 3, _oracle_like)

    def close(self) -> None:
        self._rows.close()

    def ids(self, statement: str, values: Sequence[object]) -> list[tuple[int]]:
        text = statement.replace('"HR".', "")
        keys = [_oracle_key(value) for value in values]
        return self._rows.ids(re.sub(r":(\d+)", r"?\1", text), keys)


def _oracle_keys(row: Thing) -> Mapping[str, object]:
    keys = _common_keys(row)
    if row.flag is not None:
        keys["flag"] = number_key(int(row.flag))
    if row.born is not None:
        keys["born"] = f"{row.born.isoformat()}T00:00:00.000000000"
    if row.token is not None:
        keys["token"] = str(row.token)
    keys["name"] = row.name or None
    return keys


def _oracle_key(value: object) -> object:
    match value:
        case datetime():
            return moment_key(value)
        case float() | str() | bytes():
            return value
        case int() | Decimal():
            return number_key(value)
    raise AssertionError(value)


def _oracle_timestamp(text: str, form: str) -> str:
    if form.endswith("TZH:TZM"):
        text = text.removesuffix(" +00:00")
    return text.replace(" ", "T")


def _oracle_like(pattern: str, text: str | None, escape: str) -> bool | None:
    """ORA-01424: the escape stands before ``%``, ``_`` and itself alone."""
    if text is None:
        return None
    expression, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            assert pattern[at] in ("%", "_", escape)
            expression += re.escape(pattern[at])
        else:
            expression += {"%": ".*", "_": "."}.get(character, re.escape(character))
        at += 1
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _common_keys(row: Thing) -> dict[str, object]:
    keys: dict[str, object] = {name: getattr(row, name) for name in COLUMNS}
    for name, value in keys.items():
        match value:
            case bool() | None:
                continue
            case datetime():
                keys[name] = moment_key(value)
            case date():
                keys[name] = value.isoformat()
            case int() | Decimal():
                keys[name] = number_key(value)
    return keys
