"""Whatever is sent, the answer is one of ours: spec rest-api 17.7."""

from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from fetcher.domain.json_text import dumps
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import (
    CONNECTIONS,
    JOBS,
    Answered,
    a_body,
    a_connection,
    a_request,
    an_api,
)

TEXT = st.text(max_size=20)
NUMBERS = st.integers() | st.decimals(allow_nan=False, allow_infinity=False)
FINITE = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(
    FINITE,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=10,
)
OPERATORS = st.sampled_from(["eq", "in", "between", "like", "gt", "is_null", "equals", "EQ"])
NAMES = st.sampled_from(["sales_db", "orders", "a.b", " ", "", "x" * 1000]) | TEXT
CONDITIONS = st.dictionaries(OPERATORS, st.lists(FINITE, max_size=3) | JSON, max_size=2)
TREES = st.dictionaries(NAMES, st.dictionaries(NAMES, st.dictionaries(NAMES, CONDITIONS)))
MAPPED = st.dictionaries(NAMES, st.dictionaries(NAMES, st.lists(NAMES, max_size=3), max_size=3))


@given(body=st.binary(max_size=200) | JSON.map(lambda value: dumps(value).encode()))
@example(body=b'{"metadata":{"source":"\\ud800"}}')
@example(body=b'{"port":1e999}')
async def test_any_body_of_create_is_answered_without_a_500(body: bytes) -> None:
    api = an_api()
    headers = [(b"content-type", b"application/json"), (b"x-product-name", b"acme")]
    talk, _ = await answer_of(
        api.app, a_scope("POST", CONNECTIONS.encode(), headers=headers), [body]
    )
    assert talk.status in (201, 400, 409)


@given(
    changed=st.dictionaries(st.sampled_from(sorted(a_body())), JSON, max_size=2),
    password=st.text(min_size=8, max_size=20).filter(lambda text: "\ud800" not in text),
)
async def test_no_answer_to_create_holds_the_password(
    changed: dict[str, object], password: str
) -> None:
    answered = await an_api().create(a_body() | changed | {"password": f"canary{password}"})
    assert answered.status in (201, 400, 409)
    assert b"canary" not in answered.raw


@given(body=JSON)
async def test_any_json_as_a_job_is_answered_without_a_500(body: object) -> None:
    answered = await an_api().call(
        "POST", JOBS, headers={"Content-Type": "application/json"}, data=dumps(body).encode()
    )
    assert answered.status == 400


@given(mapped=MAPPED | JSON, filters=TREES | JSON, options=JSON, metadata=JSON)
async def test_any_members_of_a_job_are_answered_without_a_500(
    mapped: object, filters: object, options: object, metadata: object
) -> None:
    api = an_api()
    await api.records.connections.insert(a_connection())
    data = {"mappedFields": mapped, "filters": filters, "options": options}
    for told in (metadata, {"source": "acme-reports"}):
        answered = await api.ask({"dataRequest": data, "metadata": told})
        assert answered.status in (200, 202, 400)


@given(noted=st.dictionaries(TEXT.map(lambda text: f"k{text}"), JSON, max_size=3), data=st.data())
async def test_hash_depends_neither_on_key_order_nor_on_white_space(
    noted: dict[str, object], data: st.DataObject
) -> None:
    tables = {"orders": ["id"], "a.b": ["x", "y"]}
    metadata = {"source": "acme-reports", **noted}
    request = {"dataRequest": {"mappedFields": {"sales_db": tables}}, "metadata": metadata}
    api = an_api()
    await api.records.connections.insert(a_connection())
    made = await api.ask(request)
    if made.status == 400:
        assert made.json["code"] == "FET-0401"
        return
    turned = _turned(request, data)
    blanks = data.draw(st.sampled_from(["", " ", "\n\t"]))
    text = f"{blanks}{dumps(turned)}{blanks}"
    again = await api.call(
        "POST", JOBS, headers={"Content-Type": "application/json"}, data=text.encode()
    )
    assert (again.status, again.json["jobId"]) == (200, made.json["jobId"])


def _turned(value: object, data: st.DataObject) -> object:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, dict):
        keys = data.draw(st.permutations(sorted(value)))
        return {key: _turned(value[key], data) for key in keys}
    return [_turned(item, data) for item in value] if isinstance(value, list) else value


@given(filters=TREES, fields=st.lists(NAMES, min_size=1, max_size=3))
async def test_filters_are_stored_whole_or_refused(
    filters: dict[str, object], fields: list[str]
) -> None:
    api = an_api()
    await api.records.connections.insert(a_connection())
    sales = {"sales_db": filters.get("sales_db", {})}
    request = {"mappedFields": {"sales_db": {"orders": fields}}, "filters": sales}
    answered = await api.ask({"dataRequest": request, "metadata": {"source": "acme-reports"}})
    if answered.status == 202:
        shown = await api.get(answered.headers["Location"])
        kept = shown.json.get("filters", {}).get("sales_db", {})
        asked = {table: below for table, below in dict(sales["sales_db"]).items() if below}  # type: ignore[call-overload] # a mapping by construction
        assert {t: set(f) for t, f in kept.items()} == {t: set(f) for t, f in asked.items()}


@given(
    parameters=st.dictionaries(
        st.sampled_from(
            ["limit", "page", "sortOrder", "startDate", "endDate", "cursor", "type", "host"]
        )
        | TEXT.map(lambda text: f"metadata.{text}"),
        TEXT | st.integers().map(str) | st.dates().map(str),
        max_size=4,
    )
)
async def test_any_query_is_answered_by_a_page_or_refused(parameters: dict[str, str]) -> None:
    query = "&".join(f"{quote(name)}={quote(value)}" for name, value in parameters.items())
    answered = await _get(f"{CONNECTIONS}", query)
    assert answered.status in (200, 400)
    if answered.status == 200:
        assert 1 <= answered.json["limit"] <= 100
        assert answered.json["page"] >= 1


@given(text=st.text(alphabet="0123456789abcdefABCDEF-{}urn:id", max_size=46) | st.uuids().map(str))
async def test_any_id_is_read_or_refused(text: str) -> None:
    answered = await _get(f"{JOBS}/{quote(text, safe='{}:')}")
    # Without an id it is the list.
    assert answered.status in ((200, 404) if text in ("", ".", "..") else (400, 404))


async def _get(path: str, query: str = "") -> Answered:
    scope = a_scope("GET", path.encode(), query=query.encode())
    talk, body = await answer_of(an_api().app, scope)
    headers = {name.decode(): value.decode() for name, value in talk.headers}
    return Answered(talk.status or 0, headers, body)  # type: ignore[arg-type] # read by name only


HEADERS = st.sampled_from(
    [
        *("X-Product-Name", "X-Request-Id", "Idempotency-Key", "Content-Type", "Content-Encoding"),
        *("Accept", "Authorization", "Last-Event-ID", "Origin", "traceparent", "tracestate"),
        *("Access-Control-Request-Method", "Access-Control-Request-Headers", "Content-Length"),
    ]
)
# what a server hands on: any byte but CR, LF and NUL
HEADER_VALUES = st.binary(max_size=130).map(lambda raw: raw.translate(None, b"\r\n\0"))
OPERATIONS = [
    ("GET", CONNECTIONS),
    ("POST", CONNECTIONS),
    ("GET", JOBS),
    ("POST", JOBS),
    ("OPTIONS", JOBS),
    ("HEAD", f"{JOBS}/events"),
    ("POST", f"{CONNECTIONS}/validate-schema"),
]


@given(
    operation=st.sampled_from(OPERATIONS),
    headers=st.lists(st.tuples(HEADERS, HEADER_VALUES), max_size=4),
    body=st.sampled_from([b"", dumps(a_body()).encode(), dumps(a_request()).encode()]),
)
async def test_any_headers_are_answered_without_a_500_and_never_told_or_logged(
    operation: tuple[str, str], headers: list[tuple[str, bytes]], body: bytes
) -> None:
    method, path = operation
    secret = (b"authorization", b"Bearer canary-5c1d")
    sent = [(name.lower().encode(), value) for name, value in headers]
    with capture_logs() as lines:
        talk, raw = await answer_of(
            an_api().app, a_scope(method, path.encode(), headers=[*sent, secret]), [body]
        )
    assert talk.status is not None
    assert talk.status < 500
    assert b"canary" not in raw
    assert "canary" not in str(lines) + str(talk.headers)
