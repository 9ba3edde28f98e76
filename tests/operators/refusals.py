"""Filters that no database takes: a bad request at once, else a failed job that names the field.

Never ignored, and never a database's own words (spec datasources 9.1, 9.4; design section 7).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from fetcher.domain.connections import SourceType
from fetcher.domain.json_values import JsonValue

Malformed = Mapping[str, Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True)
class BadRequest:
    """Refused before anything is stored; ``path`` is what the answer names, below the table."""

    where: Malformed
    path: str


@dataclass(frozen=True, slots=True)
class BadValue:
    """A value that cannot be one of the column's: the job fails and names the column.

    ``taken_by`` tells where such a value is one, and why.
    """

    where: Malformed
    taken_by: Mapping[SourceType, str] = field(default_factory=dict)

    @property
    def column(self) -> str:
        (column,) = self.where
        return column


BAD_REQUESTS: Final = (
    BadRequest({"qty": {"in": []}}, "qty.in"),
    BadRequest({"qty": {"eq": []}}, "qty.eq"),
    BadRequest({"qty": {"nin": []}}, "qty.nin"),
    BadRequest({"qty": {}}, "qty"),
    BadRequest({"qty": {"equals": [1]}}, "qty.equals"),
    BadRequest({"qty": {"eq": 1}}, "qty.eq"),
    BadRequest({"qty": {"eq": None}}, "qty"),
    BadRequest({"qty": {"eq": {"$gt": 1}}}, "qty.eq"),
    BadRequest({"qty": {"eq": [{"$gt": 1}]}}, "qty.eq[0]"),
    BadRequest({"qty": {"eq": [[1]]}}, "qty.eq[0]"),
    BadRequest({"qty": {"between": [1]}}, "qty.between"),
    BadRequest({"qty": {"between": [1, 2, 3]}}, "qty.between"),
    BadRequest({"qty": {"between": [1, None]}}, "qty.between[1]"),
    BadRequest({"qty": {"gt": [1, 2]}}, "qty.gt"),
    BadRequest({"qty": {"gt": [None]}}, "qty.gt[0]"),
    BadRequest({"qty": {"lte": []}}, "qty.lte"),
    BadRequest({"name": {"like": [5]}}, "name.like[0]"),
    BadRequest({"name": {"like": ["a", None]}}, "name.like[1]"),
    BadRequest({"name": {"is_null": ["yes"]}}, "name.is_null[0]"),
    BadRequest({"name": {"not_null": [None]}}, "name.not_null[0]"),
    BadRequest({"qty": {"in": list(range(10_001))}}, "qty.in"),
)

_ANY_NUMBER: Final = {SourceType.MONGODB: "a number may as well be a double"}
_WIDE: Final = {
    **_ANY_NUMBER,
    SourceType.SQLITE: "an integer has 64 bits",
    SourceType.ORACLE: "the column has ten digits",
}
_NINETEEN_DIGITS: Final = {
    **_ANY_NUMBER,
    SourceType.ORACLE: "the column has nineteen digits",
}
_NUMBER_1: Final = {
    SourceType.MYSQL: "a tinyint(1) holds it",
    SourceType.ORACLE: "a NUMBER(1) holds it",
}
_IMMENSE: Final = {
    SourceType.POSTGRESQL: "numeric holds it",
    SourceType.MONGODB: "Decimal128 holds it",
}
_DECIMAL_NAN: Final = {
    SourceType.POSTGRESQL: "numeric holds it",
    SourceType.MONGODB: "Decimal128 holds it",
}
_EPOCHS: Final = {SourceType.SQLITE: "a date-time may be stored as a number"}
_AS_TEXT: Final = {
    SourceType.ORACLE: "there is no type for UUIDs: the column is a text",
    SourceType.SQLITE: "there is no type for UUIDs: the column is a text",
}
_HOLDS_NAN: Final = {
    SourceType.POSTGRESQL: "double precision holds it",
    SourceType.ORACLE: "BINARY_DOUBLE holds it",
    SourceType.MONGODB: "a double holds it",
}

BAD_VALUES: Final = (
    BadValue({"qty": {"eq": ["zz"]}}),
    BadValue({"qty": {"eq": [""]}}),
    BadValue({"qty": {"eq": [True]}}),
    BadValue({"qty": {"in": [1, "zz"]}}),
    BadValue({"qty": {"eq": ["NaN"]}}, _ANY_NUMBER),
    BadValue({"qty": {"gt": [Decimal("1e400")]}}),
    BadValue({"qty": {"eq": [2147483648]}}, _WIDE),
    BadValue({"qty": {"lt": [-2147483649]}}, _WIDE),
    BadValue({"qty": {"eq": [10**30]}}, _ANY_NUMBER),
    BadValue({"qty": {"like": ["1%"]}}),
    BadValue({"big": {"eq": [9223372036854775808]}}, _NINETEEN_DIGITS),
    BadValue({"big": {"gte": [-9223372036854775809]}}, _NINETEEN_DIGITS),
    BadValue({"big": {"between": ["0", "9223372036854775808"]}}, _NINETEEN_DIGITS),
    BadValue({"price": {"eq": ["ten"]}}),
    BadValue({"price": {"eq": ["NaN"]}}, _DECIMAL_NAN),
    BadValue({"price": {"lt": [Decimal("1e400")]}}, _IMMENSE),
    BadValue({"price": {"eq": [False]}}),
    BadValue({"ratio": {"eq": ["much"]}}),
    BadValue({"ratio": {"lt": [Decimal("1e400")]}}),
    BadValue({"ratio": {"eq": ["NaN"]}}, _HOLDS_NAN),
    BadValue({"name": {"eq": [True]}}),
    BadValue({"flag": {"eq": ["perhaps"]}}),
    BadValue({"flag": {"eq": [2]}}, _NUMBER_1),
    BadValue({"flag": {"like": ["t%"]}}),
    BadValue({"born": {"eq": ["2031-02-30"]}}),
    BadValue({"born": {"between": ["2031-02-01", "2031-02-30"]}}),
    BadValue({"born": {"eq": ["1 April 2031"]}}),
    BadValue({"born": {"eq": [20310401]}}, _EPOCHS),
    BadValue({"seen": {"gt": ["yesterday"]}}),
    BadValue({"seen": {"gt": ["2031-02-30"]}}),
    BadValue({"seen": {"between": ["2031-02-01", "2031-02-30"]}}),
    BadValue({"seen": {"gt": ["2031-02-28T25:00:00Z"]}}),
    BadValue({"seen": {"gt": ["20310228"]}}),
    BadValue({"at": {"lt": ["2031-02-28T00:00:00+99:00"]}}),
    BadValue({"at": {"eq": [1]}}, _EPOCHS),
    BadValue({"token": {"eq": ["zz"]}}, _AS_TEXT),
    BadValue({"token": {"eq": [1]}}, _AS_TEXT),
    BadValue({"raw": {"eq": ["***"]}}),
    BadValue({"raw": {"eq": [1]}}),
)
"""Which types a value may have: spec 9.4. A comparison with a fraction is one, with a text none."""
