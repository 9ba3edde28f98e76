"""Whatever comes in a path, a query or a header, it is read or refused: spec rest-api 5.2 to 5.4.

A nightly run (FETCHER_TEST_SCALE above 1) tries 100 000 of each kind; test_decoder_properties.py
does the same with bodies.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quart.wrappers import Request
from werkzeug.datastructures import Headers

from fetcher.api.event_stream import parse_event_id
from fetcher.api.idempotency_header import sent_idempotency_key
from fetcher.api.job_list_parameters import job_list_request
from fetcher.api.list_parameters import ListRules, connection_query, last_values
from fetcher.api.observation import effective_request_id
from fetcher.api.path_ids import connection_id, job_id
from fetcher.api.product_header import optional_product, required_product
from fetcher.api.result_routes import preview_rows
from fetcher.domain.access_tokens import TokenMalformed, read_token, token_in
from fetcher.domain.errors import FetcherError
from tests.scale import scale_factor
from tests.unit.api.asgi_client import a_scope
from tests.unit.api.drawing import AT_ONCE, several

CASES: Final = 100_000 if scale_factor() > 1 else 200
RULES: Final = ListRules(max_limit=100, max_range_months=1)
LONGEST_NAME: Final = 100
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)

Sent = tuple[bytes, list[tuple[str, str]]]
"""A query as it was sent, and headers."""


def a_sent_request(sent: Sent) -> Request:
    """As quart makes it of what the server hands on."""
    query, headers = sent
    scope = a_scope("GET", b"/", query=query)

    async def no_push(*_: object) -> None:
        """Nothing is pushed."""

    return Request(
        "GET",
        "http",
        "/",
        query,
        Headers(headers),
        "",
        "1.1",
        scope,
        send_push_promise=no_push,
    )


def _connections(request: Request) -> None:
    query = connection_query(request.args, product_name=None, rules=RULES)
    assert 1 <= query.limit <= RULES.max_limit
    assert query.page >= 1
    _check_window(query.created_from, query.created_until)


def _jobs(request: Request) -> None:
    query = job_list_request(request.args, product_name=None, rules=RULES).query
    assert 1 <= query.limit <= RULES.max_limit
    _check_window(query.created_from, query.created_until)


def _check_window(start: datetime | None, end: datetime | None) -> None:
    assert start is None or end is None or start <= end
    for moment in (start, end):
        assert moment is None or moment >= EARLIEST


def _rows(request: Request) -> None:
    assert 1 <= preview_rows(last_values(request.args).get("rows")) <= 1000


def _product(request: Request) -> None:
    name = optional_product(request)
    if name is None:
        with pytest.raises(FetcherError, match="is required"):
            required_product(request)
        return
    assert name == required_product(request)
    assert name.isascii()
    assert 1 <= len(name) <= LONGEST_NAME


def _idempotency_key(request: Request) -> None:
    key = sent_idempotency_key(request)
    assert (key is None) == ("Idempotency-Key" not in request.headers)
    assert key is None or all("!" <= character <= "~" for character in key)


def _event_id(request: Request) -> None:
    text = request.headers.get("Last-Event-ID")
    if text is not None:
        assert str(parse_event_id(text).job_id) in text.lower()


def _request_id(request: Request) -> None:
    told = effective_request_id(request.headers.get("X-Request-Id"))
    assert told.isascii()
    assert told.isprintable()
    assert 1 <= len(told) <= 128


def _token(request: Request) -> None:
    token = token_in(request.headers.get("Authorization"))
    if token is None:
        return
    assert token == token.strip() != ""
    told = ""
    try:
        told = repr(read_token(token))
    except TokenMalformed as refused:
        told = str(refused)
    assert token not in told or token in "AccessToken() the token is malformed"


NOTHING_BUT_DIGITS = st.text(alphabet="0123456789+-.eE_ ²", max_size=25)
DATES = st.dates().map(str) | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
VALUES = st.one_of(
    st.text(max_size=20),
    NOTHING_BUT_DIGITS,
    st.integers().map(str),
    DATES,
    st.sampled_from(["asc", "DESC", "pending,failed", "completed,,x", "0001-01-01", "9999-12-31"]),
    st.sampled_from(["9999-12-31T23:59:59.999999999-23:59", "0001-01-01T00:00:00+23:59", "\0"]),
    st.text(alphabet="ABCxyz0189-_", min_size=32, max_size=32),
    st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")),
)
NAMES = st.sampled_from(
    [
        *("limit", "page", "sortOrder", "startDate", "endDate", "cursor", "type", "host"),
        *("databaseName", "status", "source", "connection", "rows", "metadata.team", "metadata."),
        *("$where", "_id", "", "limit[]"),
    ]
)


VISIBLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#")
"""What the server lets into a request line; all else is refused with its connection."""


@st.composite
def queries(draw: st.DrawFn) -> bytes:
    """Pairs of which some are known and percent-encoded, then anything that may be there."""
    pairs = draw(st.lists(st.tuples(NAMES | st.text(max_size=8), VALUES), max_size=4))
    spelled = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
    return (spelled + draw(st.just("") | st.text(alphabet=VISIBLE, max_size=12))).encode()


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"))


def headers_of(name: str, good: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    """None, one or several of this name; what a server hands on is any byte but CR, LF and NUL."""
    any_bytes = st.binary(max_size=130).map(
        lambda raw: raw.translate(None, b"\r\n\0").decode("latin-1").strip(" \t")
    )
    return st.lists(st.tuples(st.just(name), good | any_bytes), max_size=2)


PRODUCTS = st.text(alphabet="aZ09-_ ", max_size=110)
TOKENS = st.lists(st.text(alphabet="abcXYZ019-_=", max_size=12), max_size=4).map(".".join)
BEARERS = st.tuples(st.sampled_from(["Bearer ", "bearer  ", "", "Basic "]), TOKENS).map("".join)
EVENT_IDS = st.tuples(st.integers(0, 10**15), st.uuids()).map(lambda pair: f"{pair[0]}-{pair[1]}")
KEYS = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=260)

Reader = Callable[[Request], None]
NO_QUERY = st.just(b"")
NO_HEADERS: st.SearchStrategy[list[tuple[str, str]]] = st.just([])
KINDS: Final[Mapping[str, tuple[Reader, st.SearchStrategy[Sent], frozenset[str]]]] = {
    "list of connections": (
        _connections,
        st.tuples(queries(), NO_HEADERS),
        frozenset({"FET-0405", "FET-0406", "FET-0407", "FET-0408", "FET-0409"}),
    ),
    "list of jobs": (
        _jobs,
        st.tuples(queries(), NO_HEADERS),
        frozenset({"FET-0405", "FET-0406", "FET-0407", "FET-0408", "FET-0409"}),
    ),
    "rows of a preview": (_rows, st.tuples(queries(), NO_HEADERS), frozenset({"FET-0405"})),
    "X-Product-Name": (
        _product,
        st.tuples(NO_QUERY, headers_of("X-Product-Name", PRODUCTS)),
        frozenset({"FET-0403"}),
    ),
    "Idempotency-Key": (
        _idempotency_key,
        st.tuples(NO_QUERY, headers_of("Idempotency-Key", KEYS)),
        frozenset({"FET-0403"}),
    ),
    "Last-Event-ID": (
        _event_id,
        st.tuples(NO_QUERY, headers_of("Last-Event-ID", EVENT_IDS)),
        frozenset({"FET-0403"}),
    ),
    "X-Request-Id": (
        _request_id,
        st.tuples(NO_QUERY, headers_of("X-Request-Id", KEYS)),
        frozenset(),
    ),
    "Authorization": (
        _token,
        st.tuples(NO_QUERY, headers_of("Authorization", BEARERS)),
        frozenset(),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_parameter_is_read_or_refused(kind: str) -> None:
    read, sent, codes = KINDS[kind]

    @settings(max_examples=CASES // AT_ONCE)
    @given(requests=several(sent))
    def check(requests: list[Sent]) -> None:
        for each in requests:
            code = None
            try:
                read(a_sent_request(each))
            except FetcherError as refused:
                code = refused.code
            assert code is None or code in codes

    check()


DIGITS = "0123456789abcdefABCDEF"
FORMS = st.sampled_from(["{}", "{{{}}}", "urn:uuid:{}", "URN:UUID:{}", " {}", "{}\n", "({})"])
SPELLED = st.tuples(FORMS, st.uuids(), st.booleans()).map(
    lambda drawn: drawn[0].format(drawn[1].hex if drawn[2] else drawn[1])
)
ODD = st.text(alphabet=f"{DIGITS}-{{}}urn:id٣", max_size=46) | st.text(max_size=40)


@settings(max_examples=CASES // AT_ONCE)
@given(texts=several(SPELLED | ODD))
def test_any_path_id_is_read_as_the_id_it_spells_or_refused(texts: list[str]) -> None:
    for text in texts:
        check_path_id(text)


def check_path_id(text: str) -> None:
    read: UUID | None = None
    with suppress(FetcherError):
        read = job_id(text)
    if read is None:
        with pytest.raises(FetcherError, match="invalid connection id") as refused:
            connection_id(text)
        assert refused.value.code == "FET-0404"
        return
    assert connection_id(text) == read
    assert job_id(str(read)) == read
    assert read.hex in text.lower().replace("-", "")
