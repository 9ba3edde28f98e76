"""Values of each kind, drawn: what databases hold and drivers hand over as Python's own types."""

from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal

from hypothesis import strategies as st

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
DOUBLES = st.floats()
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLES = st.floats(width=32)
FINITE_SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)
BYTES = st.binary(max_size=200)
UUIDS = st.uuids()
DATES = st.dates()
WALLS = st.datetimes()

_AWKWARD = st.sampled_from(
    ["\\", '"', "'", "/", "\t", "\n", "\r", "\x01", "\x1f", "\x7f", "\x80", "\u2028", "\u2029",
     "\ufeff", "\ufffd", "\uffff", "\U0001f600", "\U0010ffff", "<", "&", "%", "%s", "\x01!", "null",
     "[1,2]", '{"a":1}', "e\u0301", "\u0130", "\u8868"]
)  # fmt: skip
_MARGIN = timedelta(days=2)
_EXACT = Context(prec=200)
_ANY = st.characters(exclude_categories=["Cs"])


def texts(*, with_nul: bool) -> st.SearchStrategy[str]:
    """Of every class of code point, most often of those that something may stumble over."""
    pieces = st.one_of(_AWKWARD, _ANY)
    text = st.lists(pieces, max_size=40).map("".join)
    return text if with_nul else text.map(lambda drawn: drawn.replace("\0", ""))


@st.composite
def decimals(draw: st.DrawFn, *, digits: int, scale: int) -> Decimal:
    """``numeric(digits, scale)`` holds each, with its own number of digits after the point."""
    places = draw(st.integers(0, scale))
    most = 10 ** (digits - scale + places) - 1
    return Decimal(draw(st.integers(-most, most))).scaleb(-places, _EXACT)


@st.composite
def instants(draw: st.DrawFn) -> datetime:
    """In a zone of whole minutes; in UTC they are in the years that Python has."""
    day = draw(st.dates(date.min + _MARGIN, date.max - _MARGIN))
    minutes = draw(st.integers(-14 * 60, 14 * 60))
    return datetime.combine(day, draw(st.times()), timezone(timedelta(minutes=minutes)))


@st.composite
def numbers_in_json(draw: st.DrawFn) -> str:
    """A JSON document whose numbers no double holds, or is written otherwise."""
    number = st.one_of(
        st.integers(-(10**30), 10**30).map(str),
        st.from_regex(r"-?(0|[1-9][0-9]{0,25})\.[0-9]{1,25}", fullmatch=True),
        st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,5})?[eE][+-]?[0-9]{1,3}", fullmatch=True),
    )
    return f'{{"a":[{draw(number)},{draw(number)}],"b":{draw(number)}}}'
