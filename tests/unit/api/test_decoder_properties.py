"""Whatever bytes come as a body, they are read or refused: spec rest-api 5.1 and 17.7.

A nightly run (FETCHER_TEST_SCALE above 1) tries 100 000 bodies of each kind.
"""

import zlib
from collections.abc import Callable
from typing import Final

import brotli
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from werkzeug.exceptions import RequestEntityTooLarge

from fetcher.api.models.connections import CreateConnectionRequest, PatchConnectionRequest
from fetcher.api.models.jobs import CreateJobRequest
from fetcher.api.models.schema_validation import ValidateSchemaRequest
from fetcher.api.payloads import Part, decode
from fetcher.domain.errors import FetcherError
from fetcher.domain.job_order import checked
from fetcher.domain.json_text import dumps
from fetcher.domain.json_values import JsonValue
from fetcher.domain.schema_question import checked_question
from fetcher_engine import Limits
from tests.scale import scale_factor
from tests.unit.api.drawing import AT_ONCE, several
from tests.unit.api.harness import a_body, a_request
from tests.unit.api.test_http_properties import JSON

CANARY: Final = "canary-7f3a"
BODIES: Final = 100_000 if scale_factor() > 1 else 300
CODES: Final = frozenset({None, "413", "FET-0001", "FET-0401", "FET-0402", "FET-1061"})


def _judged_job(payload: CreateJobRequest) -> None:
    order = payload.to_command(request_id="r")
    checked(order, ceilings=Limits.defaults(), options_enabled=True)


def _judged_question(payload: ValidateSchemaRequest) -> None:
    checked_question(payload.to_command(), ceilings=Limits.defaults())


Judge = Callable[..., object]
_CONNECTION = a_body(password=CANARY, ssl={"mode": "require"}, metadata={"a": [1, None, 1.5]})
_FILTERS: Final[JsonValue] = {
    "sales_db": {"orders": {"id": {"in": [1, "x", None]}, "total": {"between": [1, 2]}}}
}
_LIMITS: Final[JsonValue] = {"limits": {"timeout": 2, "maxConcurrency": 2}, "values": "natural"}
KINDS: Final[dict[str, tuple[type[Part], Judge, bytes]]] = {
    "create": (
        CreateConnectionRequest,
        CreateConnectionRequest.to_command,
        dumps(_CONNECTION).encode(),
    ),
    "patch": (
        PatchConnectionRequest,
        PatchConnectionRequest.to_command,
        dumps(_CONNECTION).encode(),
    ),
    "job": (
        CreateJobRequest,
        _judged_job,
        dumps(a_request(filters=_FILTERS, options=_LIMITS)).encode(),
    ),
    "validate": (
        ValidateSchemaRequest,
        _judged_question,
        dumps({"mappedFields": {"sales_db": {"orders": ["id", "total"]}}}).encode(),
    ),
}


def answer_to(kind: str, body: bytes, encodings: list[str]) -> str | None:
    """The code of the refusal, None where it is read. Nothing else may be raised."""
    model, judge, _ = KINDS[kind]
    told, code = "", None
    try:
        payload = decode(body, encodings, model)
        # what a log or a traceback would show of it
        told = repr(payload)
        judge(payload)
    except RequestEntityTooLarge:
        code = "413"
    except FetcherError as refused:
        told += f"{refused!r} {refused.message} {refused.fields}"
        code = refused.code
    assert CANARY not in told
    assert code in CODES
    return code


@pytest.mark.parametrize("kind", KINDS)
def test_the_body_that_is_mutated_is_a_good_one(kind: str) -> None:
    assert answer_to(kind, KINDS[kind][2], []) is None


@st.composite
def mutated(draw: st.DrawFn, good: bytes) -> bytes:
    """A good body with a few of its bytes left out, put in, repeated or replaced."""
    body = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 12)))
        put_in = draw(
            st.sampled_from(TOKENS) | st.binary(max_size=4) | st.just(bytes(body[start:end]))
        )
        body[start : end if draw(st.booleans()) else start] = put_in
    return bytes(body)


TOKENS: Final = [
    *(b"null", b"true", b"1e999", b"-0", b"1e9999999", b"9" * 400, b"NaN", b"{", b"}", b"[", b"]"),
    *(b'"', b",", b":", b"\\ud800", b"\\u0000", b"\x00", b"\xff", b"\xed\xa0\x80", b"[" * 70),
    *(b'{"a":1,"a":2}', b'"eq":[1],"EQ":[2],', b'"dataRequest":null,', b'"":"",', b"[[]]"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_read_or_refused(kind: str) -> None:
    @settings(max_examples=BODIES // AT_ONCE)
    @given(bodies=several(st.binary(max_size=200) | mutated(KINDS[kind][2])))
    @example(bodies=[b"", b"null", b"[" * 100_000])
    @example(bodies=[b'{"dataRequest":{"filters":' + b'{"a":' * 60 + b"1" + b"}" * 62])
    def check(bodies: list[bytes]) -> None:
        for body in bodies:
            answer_to(kind, body, [])

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_any_json_is_read_or_refused(kind: str) -> None:
    good = dict.fromkeys(("metadata", "dataRequest", "mappedFields", "password", "port"), JSON)

    @settings(max_examples=BODIES // AT_ONCE)
    @given(values=several(JSON | st.fixed_dictionaries({}, optional=good)))
    def check(values: list[object]) -> None:
        for value in values:
            answer_to(kind, dumps(value).encode(), [])

    check()


PACKED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda body: zlib.compress(body, wbits=31),
    "deflate": zlib.compress,
    "br": brotli.compress,
}


Damage = tuple[int, bytes] | None
PACKINGS = st.tuples(
    st.lists(st.sampled_from([*PACKED, "zstd", "", "x"]), max_size=3),
    st.none() | st.tuples(st.integers(0, 60), st.binary(max_size=3)),
)


@settings(max_examples=BODIES // AT_ONCE)
@given(packings=several(PACKINGS))
def test_any_packing_is_undone_or_refused(packings: list[tuple[list[str], Damage]]) -> None:
    for names, damage in packings:
        check_packing(names, damage)


def check_packing(names: list[str], damage: Damage) -> None:
    body = KINDS["job"][2]
    for name in names:
        body = PACKED.get(name, bytes)(body)
    if damage is not None:
        body = body[: damage[0]] + damage[1] + body[damage[0] + len(damage[1]) :]
    answered = answer_to("job", body, names)
    if damage is None:
        assert answered == (None if set(names) <= set(PACKED) else "FET-0001")
