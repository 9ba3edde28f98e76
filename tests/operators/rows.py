"""The rows that every database holds in the tests of filters: one table, the same everywhere.

``at`` is an instant, ``seen`` a wall time; both to milliseconds, which every database holds.
"""

from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

TABLE: Final = "things"


class ColumnKind(StrEnum):
    """What a column holds, by the name of the column that holds it."""

    INTEGER = "qty"
    BIGINT = "big"
    DECIMAL = "price"
    FLOAT = "ratio"
    TEXT = "name"
    BOOLEAN = "flag"
    DATE = "born"
    TIMESTAMP = "seen"
    INSTANT = "at"
    UUID = "token"
    BYTES = "raw"


@dataclass(frozen=True, slots=True)
class Thing:
    """One row; all but its id may be NULL. Fields are named as :class:`ColumnKind` says."""

    id: int
    qty: int | None = None
    big: int | None = None
    price: Decimal | None = None
    ratio: float | None = None
    name: str | None = None
    flag: bool | None = None
    born: date | None = None
    seen: datetime | None = None
    at: datetime | None = None
    token: UUID | None = None
    raw: bytes | None = None


COLUMNS: Final = tuple(field.name for field in fields(Thing))

_LAST: Final = datetime(2031, 3, 31, 23, 59, 59, 999000, UTC)
_MIDNIGHT: Final = datetime(2031, 4, 1, tzinfo=UTC)
_NOON: Final = datetime(2031, 3, 1, 12, 30, tzinfo=UTC)

ROWS: Final = (
    Thing(
        1,
        qty=10,
        big=9007199254740993,
        price=Decimal("10.50"),
        ratio=0.1,
        name="open",
        flag=True,
        born=date(2031, 3, 31),
        seen=_LAST.replace(tzinfo=None),
        at=_LAST,
        token=UUID("7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10"),
        raw=b"\xbe\xef",
    ),
    Thing(
        2,
        qty=-5,
        big=9007199254740992,
        price=Decimal("1.00"),
        ratio=7.0,
        name="late",
        flag=False,
        born=date(2031, 4, 1),
        seen=_MIDNIGHT.replace(tzinfo=None),
        at=_MIDNIGHT,
        token=UUID("00000000-0000-4000-8000-000000000001"),
        raw=b"\x00\x01",
    ),
    Thing(
        3,
        qty=2147483647,
        big=-9223372036854775808,
        price=Decimal("-3.25"),
        ratio=2.5,
        name="banana",
        born=date(2031, 3, 1),
        seen=_NOON.replace(tzinfo=None),
        at=_NOON,
    ),
    Thing(4),
    Thing(5, name="x'; DROP TABLE things; --"),
    Thing(6, name="50%"),
    Thing(7, name="a_b"),
    Thing(8, name="a\\b"),
    Thing(9, name="axb"),
    Thing(
        10,
        qty=0,
        big=9223372036854775807,
        price=Decimal("9999999999.99"),
        ratio=-1e-7,
        name="Gr\u00f6\u00dfe \u6f22\u5b57 \U0001f600",
    ),
    Thing(11, name='say "hi"'),
    Thing(12, name="OPEN"),
    Thing(13, name=""),
    Thing(14, name="[a-c]"),
)
