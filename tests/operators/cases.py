"""Filters with the rows that they must give, the same on every database (spec datasources 9, 19.7).

Where a database gives others, the case says which and why; there is no other difference.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias

from fetcher.domain.connections import SourceType
from fetcher.domain.json_values import JsonScalar
from tests.operators.rows import ROWS, ColumnKind

Condition: TypeAlias = Mapping[str, Sequence[JsonScalar]]
Where: TypeAlias = Mapping[str, Condition]

_MYSQL, _SQLSERVER, _ORACLE = SourceType.MYSQL, SourceType.SQL_SERVER, SourceType.ORACLE
_MONGODB, _SQLITE = SourceType.MONGODB, SourceType.SQLITE
_ALL_IDS: Final = tuple(row.id for row in ROWS)


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What one database does instead; ``ids`` None: it refuses."""

    ids: tuple[int, ...] | None
    why: str


@dataclass(frozen=True, slots=True)
class Case:
    """``where`` gives the rows with these ids."""

    where: Where
    ids: tuple[int, ...]
    otherwise: Mapping[SourceType, Otherwise] = field(default_factory=dict)

    def expected(self, source_type: SourceType) -> tuple[int, ...] | None:
        """None: the database refuses the filter."""
        found = self.otherwise.get(source_type)
        return self.ids if found is None else found.ids


def _differing(
    ids: Sequence[int] | None, why: str, *databases: SourceType
) -> dict[SourceType, Otherwise]:
    other = Otherwise(None if ids is None else tuple(ids), why)
    return dict.fromkeys(databases, other)


_CASE: Final = "the column's collation ignores case (spec 9.2)"
_LIKE_CASE: Final = "LIKE ignores case there (spec 9.2, 9.3)"
_PADDED: Final = "the column's collation ignores spaces at the end"
_NO_EMPTY: Final = "the empty text is NULL in Oracle"
_WITH_MISSING: Final = "in MongoDB null and absent differ from every value (spec 9.3)"
_NO_ORDER: Final = "MongoDB orders binaries by their length and subtype first"
_UUID_ORDER: Final = "uniqueidentifier is ordered by its last six bytes first"
_UUID_TEXT: Final = "there is no type for UUIDs: the column is a text"


def _column(kind: ColumnKind, *cases: Case) -> tuple[Case, ...]:
    assert all(kind in case.where for case in cases)
    return cases


def _but(ids: Sequence[int]) -> tuple[int, ...]:
    """All ids but these."""
    return tuple(each for each in _ALL_IDS if each not in ids)


def _not(kind: ColumnKind, *values: JsonScalar, gone: Sequence[int]) -> tuple[Case, ...]:
    """``ne`` and ``nin`` of the values, which leave out the rows ``gone`` and those with NULL."""
    present = [row.id for row in ROWS if getattr(row, kind) is not None]
    left = tuple(each for each in present if each not in gone)
    missing = {_MONGODB: Otherwise(_but(gone), _WITH_MISSING)}
    if kind is ColumnKind.TEXT:
        without_empty = tuple(each for each in left if each != 13)
        missing[_ORACLE] = Otherwise(without_empty, _NO_EMPTY)
    return (
        Case({kind: {"ne": values}}, left, missing),
        Case({kind: {"nin": values}}, left, missing),
    )


def _nulls(kind: ColumnKind, value: JsonScalar, found: int) -> tuple[Case, ...]:
    """Everything that asks for NULL, or for what is not."""
    null = tuple(row.id for row in ROWS if getattr(row, kind) is None)
    present = tuple(row.id for row in ROWS if getattr(row, kind) is not None)
    others = tuple(each for each in present if each != found)

    def in_oracle(ids: tuple[int, ...], *, with_empty: bool) -> dict[SourceType, Otherwise]:
        if kind is not ColumnKind.TEXT:
            return {}
        own = sorted({*ids, 13}) if with_empty else [each for each in ids if each != 13]
        return _differing(own, _NO_EMPTY, _ORACLE)

    with_value = tuple(sorted((*null, found)))
    return (
        Case({kind: {"is_null": [True]}}, null, in_oracle(null, with_empty=True)),
        Case({kind: {"not_null": [True]}}, present, in_oracle(present, with_empty=False)),
        Case({kind: {"eq": [None]}}, null, in_oracle(null, with_empty=True)),
        Case({kind: {"ne": [None]}}, present, in_oracle(present, with_empty=False)),
        Case({kind: {"in": [value, None]}}, with_value, in_oracle(with_value, with_empty=True)),
        Case({kind: {"nin": [value, None]}}, others, in_oracle(others, with_empty=False)),
    )


INTEGERS: Final = _column(
    ColumnKind.INTEGER,
    Case({"qty": {"eq": [10]}}, (1,)),
    Case({"qty": {"eq": [10, -5, 77]}}, (1, 2)),
    Case({"qty": {"eq": ["10"]}}, (1,)),
    Case({"qty": {"eq": [Decimal("10.0")]}}, (1,)),
    Case({"qty": {"eq": [Decimal("1e1")]}}, (1,)),
    Case({"qty": {"eq": [Decimal("10.5")]}}, ()),
    Case({"qty": {"in": [0, 2147483647]}}, (3, 10)),
    Case({"qty": {"in": list(range(1500, 3100))}}, ()),
    Case({"qty": {"in": [*range(1500, 3800), 10]}}, (1,)),
    Case({"qty": {"gt": [0]}}, (1, 3)),
    Case({"qty": {"gt": [Decimal("9.5")]}}, (1, 3)),
    Case({"qty": {"gte": [0]}}, (1, 3, 10)),
    Case({"qty": {"lt": [0]}}, (2,)),
    Case({"qty": {"lt": [Decimal("10.5")]}}, (1, 2, 10)),
    Case({"qty": {"lte": [0]}}, (2, 10)),
    Case({"qty": {"lte": [2147483647]}}, (1, 2, 3, 10)),
    Case({"qty": {"between": [0, 10]}}, (1, 10)),
    Case({"qty": {"between": [10, 0]}}, ()),
    Case({"qty": {"gte": [-5], "lt": [10]}}, (2, 10)),
    Case({"qty": {"eq": [10], "gt": [10]}}, ()),
    Case({"qty": {"eq": [10, 0], "in": [0, -5]}}, (10,)),
    Case({"qty": {"gte": [0], "between": [-5, 10]}}, (1, 10)),
    *_not(ColumnKind.INTEGER, 10, -5, gone=(1, 2)),
    *_nulls(ColumnKind.INTEGER, 10, 1),
)

BIGINTS: Final = _column(
    ColumnKind.BIGINT,
    Case({"big": {"eq": [9007199254740993]}}, (1,)),
    Case({"big": {"eq": ["9007199254740993"]}}, (1,)),
    Case({"big": {"in": [9007199254740993, -9223372036854775808]}}, (1, 3)),
    Case({"big": {"gt": [9007199254740992]}}, (1, 10)),
    Case({"big": {"gte": [9223372036854775807]}}, (10,)),
    Case({"big": {"lt": [9007199254740993]}}, (2, 3)),
    Case({"big": {"lte": [-9223372036854775808]}}, (3,)),
    Case({"big": {"between": [9007199254740992, 9007199254740992]}}, (2,)),
    Case({"big": {"gt": [Decimal("9007199254740992.5")]}}, (1, 10)),
    Case({"big": {"lt": [Decimal("9007199254740992.5")]}}, (2, 3)),
    Case({"big": {"lte": [Decimal("9007199254740992.7")]}}, (2, 3)),
    Case({"big": {"gte": [Decimal("9007199254740992.3")]}}, (1, 10)),
    Case({"big": {"eq": [Decimal("9007199254740992.5")]}}, ()),
    Case({"big": {"eq": [Decimal("9007199254740992.5"), 9007199254740993]}}, (1,)),
    *_not(ColumnKind.BIGINT, 9007199254740993, gone=(1,)),
    *_nulls(ColumnKind.BIGINT, 9007199254740993, 1),
)

DECIMALS: Final = _column(
    ColumnKind.DECIMAL,
    Case({"price": {"eq": [Decimal("10.5")]}}, (1,)),
    Case({"price": {"eq": ["10.50"]}}, (1,)),
    Case({"price": {"eq": [Decimal("10.501")]}}, ()),
    Case({"price": {"in": [1, "-3.25"]}}, (2, 3)),
    Case({"price": {"gt": [Decimal("9999999999.98")]}}, (10,)),
    Case({"price": {"gt": [Decimal("10.499")]}}, (1, 10)),
    Case({"price": {"gte": [Decimal("10.5")]}}, (1, 10)),
    Case({"price": {"lt": [0]}}, (3,)),
    Case({"price": {"lte": [1]}}, (2, 3)),
    Case({"price": {"between": ["-3.25", 1]}}, (2, 3)),
    *_not(ColumnKind.DECIMAL, "10.50", gone=(1,)),
    *_nulls(ColumnKind.DECIMAL, "10.50", 1),
)

FLOATS: Final = _column(
    ColumnKind.FLOAT,
    Case({"ratio": {"eq": [Decimal("0.1")]}}, (1,)),
    Case({"ratio": {"eq": ["0.1"]}}, (1,)),
    Case({"ratio": {"in": [7, Decimal("-1e-7")]}}, (2, 10)),
    Case({"ratio": {"gt": [Decimal("0.1")]}}, (2, 3)),
    Case({"ratio": {"gte": [Decimal("0.1")]}}, (1, 2, 3)),
    Case({"ratio": {"lt": [0]}}, (10,)),
    Case({"ratio": {"lte": [Decimal("0.1")]}}, (1, 10)),
    Case({"ratio": {"between": [0, Decimal("2.5")]}}, (1, 3)),
    Case({"ratio": {"lt": [Decimal("1e300")]}}, (1, 2, 3, 10)),
    *_not(ColumnKind.FLOAT, Decimal("0.1"), 7, gone=(1, 2)),
    *_nulls(ColumnKind.FLOAT, Decimal("0.1"), 1),
)

_EVIL: Final = "x'; DROP TABLE things; --"
_NO_NAMES: Final = (4,)

TEXTS: Final = _column(
    ColumnKind.TEXT,
    Case({"name": {"eq": ["late"]}}, (2,)),
    Case({"name": {"eq": ["open"]}}, (1,), _differing([1, 12], _CASE, _MYSQL, _SQLSERVER)),
    Case({"name": {"eq": ["late", "banana"]}}, (2, 3)),
    Case({"name": {"eq": [_EVIL]}}, (5,)),
    Case({"name": {"eq": ["50%"]}}, (6,)),
    Case({"name": {"eq": ["a_b"]}}, (7,)),
    Case({"name": {"eq": ["a\\b"]}}, (8,)),
    Case({"name": {"eq": ["a\\\\b"]}}, ()),
    Case({"name": {"eq": ["Gr\u00f6\u00dfe \u6f22\u5b57 \U0001f600"]}}, (10,)),
    Case({"name": {"eq": ['say "hi"']}}, (11,)),
    Case({"name": {"eq": [5]}}, ()),
    Case({"name": {"eq": ['O\'Hara "x"; DROP']}}, ()),
    Case({"name": {"eq": [""]}}, (13,), _differing([4, 13], _NO_EMPTY, _ORACLE)),
    Case({"name": {"eq": [" "]}}, (), _differing([13], _PADDED, _MYSQL, _SQLSERVER)),
    Case({"name": {"in": ["late", _EVIL, "nobody"]}}, (2, 5)),
    Case({"name": {"gt": ["lat"], "lt": ["latf"]}}, (2,)),
    Case({"name": {"gt": ["late"], "lt": ["latf"]}}, ()),
    Case({"name": {"gte": ["late"], "lte": ["late"]}}, (2,)),
    Case({"name": {"between": ["banana", "banana"]}}, (3,)),
    Case({"name": {"between": ["b", "c"]}}, (3,)),
    Case({"name": {"like": ["%ana%"]}}, (3,)),
    Case(
        {"name": {"like": ["%ANA%"]}},
        (),
        _differing([3], _LIKE_CASE, _MYSQL, _SQLSERVER, _MONGODB, _SQLITE),
    ),
    Case({"name": {"like": ["ba%", "la%"]}}, (2, 3)),
    Case({"name": {"like": ["%ana"]}}, (3,)),
    Case({"name": {"like": ["late"]}}, (2,)),
    Case({"name": {"like": ["a_b"]}}, (7, 8, 9)),
    Case({"name": {"like": ["a\\_b"]}}, (7,)),
    Case({"name": {"like": ["a\\\\b"]}}, (8,)),
    Case({"name": {"like": ["a\\xb"]}}, (9,)),
    Case({"name": {"like": ["50\\%"]}}, (6,)),
    Case({"name": {"like": ["%\\%%"]}}, (6,)),
    Case({"name": {"like": ["%_\\"]}}, ()),
    Case({"name": {"like": ["a.b"]}}, ()),
    Case({"name": {"like": ["[a-c]"]}}, (14,)),
    Case({"name": {"like": ["[%"]}}, (14,)),
    Case({"name": {"like": ["%\u6f22_ %"]}}, (10,)),
    Case({"name": {"like": ["% _"]}}, (10,)),
    Case({"name": {"like": ["%'; DROP%--"]}}, (5,)),
    Case({"name": {"like": ["%"]}}, _but(_NO_NAMES), _differing(_but((4, 13)), _NO_EMPTY, _ORACLE)),
    *_not(ColumnKind.TEXT, "late", _EVIL, gone=(2, 5)),
    *_nulls(ColumnKind.TEXT, "late", 2),
)

BOOLEANS: Final = _column(
    ColumnKind.BOOLEAN,
    Case({"flag": {"eq": [True]}}, (1,)),
    Case({"flag": {"eq": [False]}}, (2,)),
    Case({"flag": {"eq": [1]}}, (1,)),
    Case({"flag": {"eq": ["false"]}}, (2,)),
    Case({"flag": {"in": [True, False]}}, (1, 2)),
    Case({"flag": {"gt": [False]}}, (1,)),
    Case({"flag": {"gte": [True]}}, (1,)),
    Case({"flag": {"lt": [True]}}, (2,)),
    Case({"flag": {"lte": [True]}}, (1, 2)),
    Case({"flag": {"between": [False, True]}}, (1, 2)),
    *_not(ColumnKind.BOOLEAN, True, gone=(1,)),
    *_nulls(ColumnKind.BOOLEAN, True, 1),
)

DATES: Final = _column(
    ColumnKind.DATE,
    Case({"born": {"eq": ["2031-04-01"]}}, (2,)),
    Case({"born": {"in": ["2031-04-01", "2031-03-01"]}}, (2, 3)),
    Case({"born": {"gt": ["2031-03-31"]}}, (2,)),
    Case({"born": {"gt": ["2031-03-31T12:00:00Z"]}}, (2,)),
    Case({"born": {"gte": ["2031-03-31"]}}, (1, 2)),
    Case({"born": {"lt": ["2031-03-31"]}}, (3,)),
    Case({"born": {"lte": ["2031-03-31"]}}, (1, 3)),
    Case({"born": {"lte": ["2031-03-31T12:00:00Z"]}}, (1, 3)),
    Case({"born": {"between": ["2031-03-01", "2031-03-31"]}}, (1, 3)),
    Case({"born": {"between": ["2031-03-31", "2031-03-01"]}}, ()),
    *_not(ColumnKind.DATE, "2031-04-01", gone=(2,)),
    *_nulls(ColumnKind.DATE, "2031-04-01", 2),
)


def _moments(kind: ColumnKind) -> tuple[Case, ...]:
    """A wall time is compared with an instant's UTC: both columns give the same rows."""
    return _column(
        kind,
        Case({kind: {"eq": ["2031-04-01"]}}, (2,)),
        Case({kind: {"eq": ["2031-04-01T00:00:00Z"]}}, (2,)),
        Case({kind: {"eq": ["2031-04-01T05:45:00+05:45"]}}, (2,)),
        Case({kind: {"eq": ["2031-03-31T20:00:00-04:00"]}}, (2,)),
        Case({kind: {"eq": ["2031-03-31T23:59:59.999Z"]}}, (1,)),
        Case({kind: {"eq": ["2031-03-01T12:30:00"]}}, (3,)),
        Case({kind: {"in": ["2031-04-01T00:00:00Z", "2031-03-01T12:30:00Z"]}}, (2, 3)),
        Case({kind: {"gt": ["2031-03-31"]}}, (1, 2)),
        Case({kind: {"gte": ["2031-03-31T23:59:59.999Z"]}}, (1, 2)),
        Case({kind: {"lt": ["2031-03-31T23:59:59.999Z"]}}, (3,)),
        Case({kind: {"lte": ["2031-03-31"]}}, (3,)),
        Case({kind: {"gte": ["2031-03-01T00:00:00Z"], "lt": ["2031-04-01T00:00:00Z"]}}, (1, 3)),
        Case({kind: {"between": ["2031-03-01", "2031-03-31"]}}, (1, 3)),
        Case({kind: {"between": ["2031-03-01", "9999-12-31"]}}, (1, 2, 3)),
        Case({kind: {"between": ["2031-03-01T00:00:00Z", "2031-03-31T00:00:00Z"]}}, (3,)),
        Case({kind: {"between": ["2031-04-01", "2031-04-01"]}}, (2,)),
        *_not(kind, "2031-04-01T00:00:00Z", gone=(2,)),
        *_nulls(kind, "2031-04-01T00:00:00Z", 2),
    )


_UUID: Final = "7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10"
_ONE: Final = "00000000-0000-4000-8000-000000000001"
_TEXTUAL: Final = _differing([], _UUID_TEXT, _ORACLE, _SQLITE)
_UNORDERED: Final = _differing(None, _NO_ORDER, _MONGODB)

UUIDS: Final = _column(
    ColumnKind.UUID,
    Case({"token": {"eq": [_UUID]}}, (1,)),
    Case({"token": {"eq": [_UUID.upper()]}}, (1,), _TEXTUAL),
    Case({"token": {"in": [_UUID.replace("-", "")]}}, (1,), _TEXTUAL),
    Case({"token": {"in": [_UUID, _ONE]}}, (1, 2)),
    Case({"token": {"gt": [_ONE]}}, (1,), _UNORDERED),
    Case({"token": {"gte": [_ONE]}}, (1, 2), _UNORDERED),
    Case({"token": {"lt": [_UUID]}}, (2,), _UNORDERED),
    Case({"token": {"lte": [_UUID]}}, (1, 2), _UNORDERED),
    Case({"token": {"between": [_ONE, _ONE]}}, (2,), _UNORDERED),
    *_not(ColumnKind.UUID, _UUID, gone=(1,)),
    *_nulls(ColumnKind.UUID, _UUID, 1),
)

BYTES: Final = _column(
    ColumnKind.BYTES,
    Case({"raw": {"eq": ["vu8="]}}, (1,)),
    Case({"raw": {"in": ["vu8=", "AAE="]}}, (1, 2)),
    Case({"raw": {"gt": ["AAE="]}}, (1,), _UNORDERED),
    Case({"raw": {"gte": ["AAE="]}}, (1, 2), _UNORDERED),
    Case({"raw": {"lt": ["vu8="]}}, (2,), _UNORDERED),
    Case({"raw": {"lte": ["vu8="]}}, (1, 2), _UNORDERED),
    Case({"raw": {"between": ["AAE=", "AAE="]}}, (2,), _UNORDERED),
    *_not(ColumnKind.BYTES, "vu8=", gone=(1,)),
    *_nulls(ColumnKind.BYTES, "vu8=", 1),
)

TOGETHER: Final = (
    Case({"qty": {"gt": [0]}, "flag": {"eq": [True]}}, (1,)),
    Case({"name": {"not_null": [True]}, "id": {"lt": [6]}}, (1, 2, 3, 5)),
    Case({"price": {"lt": [5]}, "seen": {"gte": ["2031-04-01"]}, "qty": {"lt": [0]}}, (2,)),
)

CASES: Final = (
    *INTEGERS,
    *BIGINTS,
    *DECIMALS,
    *FLOATS,
    *TEXTS,
    *BOOLEANS,
    *DATES,
    *_moments(ColumnKind.TIMESTAMP),
    *_moments(ColumnKind.INSTANT),
    *UUIDS,
    *BYTES,
    *TOGETHER,
)


def spelled(where: Where, source_type: SourceType) -> Where:
    """Bytes as results write them: in hex from MongoDB, in base64 from all others."""
    if source_type is not SourceType.MONGODB or ColumnKind.BYTES not in where:
        return where
    return {
        column: {
            operator: [
                base64.b64decode(value).hex() if isinstance(value, str) else value
                for value in values
            ]
            for operator, values in condition.items()
        }
        for column, condition in where.items()
    }
