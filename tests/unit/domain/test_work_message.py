"""The work message: spec worker-and-events 2.2, 2.3, 7.3; table 12.3 where its body is read."""

import json
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.domain.jobs import JobOptions
from fetcher.domain.trace_context import TraceContext
from fetcher.domain.work_message import (
    JobIdRequired,
    MalformedWorkMessage,
    WorkMessage,
    WorkMessageError,
    encode_work_message,
    parse_work_message,
    work_headers,
)
from tests.unit.crypto import vectors
from tests.unit.domain.builders import JOB_ID, a_job

OTHER_ID = "0195a0b1-7c2d-7e3f-8a4b-000000000001"
ZERO_ID = "00000000-0000-0000-0000-000000000000"


def job_id_in(body: bytes, **headers: object) -> str:
    return str(parse_work_message(body, headers).job_id)


def test_the_body_is_that_of_the_vectors() -> None:
    assert encode_work_message(a_job()) == vectors.WORK_BODY


def test_filters_are_sent_only_where_there_are_any_and_values_are_exact() -> None:
    job = a_job(
        filters={
            "sales_db": {
                "orders": {"total": {"lte": (9007199254740993,), "gte": (Decimal("1.10"),)}}
            }
        },
        metadata={"source": "a<b>&c\u2028", "n": Decimal("1.0")},
        options=JobOptions(values="natural"),
    )
    assert encode_work_message(job).decode() == (
        '{"createdAt":"2026-03-14T09:26:53.5Z",'
        '"filters":{"sales_db":{"orders":{"total":{"gte":[1.10],"lte":[9007199254740993]}}}},'
        f'"jobId":"{JOB_ID}","mappedFields":{{"sales_db":{{"orders":["id","total"]}}}},'
        '"metadata":{"n":1.0,"source":"a\\u003cb\\u003e\\u0026c\\u2028"}}'
    )


def test_metadata_is_always_sent() -> None:
    assert json.loads(encode_work_message(a_job(metadata={})))["metadata"] == {}


def test_the_headers_are_the_documented_ones() -> None:
    assert work_headers(a_job()) == {
        "jobId": str(JOB_ID),
        "X-Request-Id": "req-1",
        "x-retry-count": 0,
    }
    traced = work_headers(a_job(), tenant="t1", trace=TraceContext("00-a-b-01"))
    assert (traced["X-Tenant-ID"], traced["Traceparent"]) == ("t1", "00-a-b-01")


def test_a_job_without_request_id_gets_one() -> None:
    request_id = work_headers(a_job(request_id=""))["X-Request-Id"]
    assert isinstance(request_id, str)
    assert uuid.UUID(request_id).version == 7


def test_what_was_sent_is_read() -> None:
    job = a_job()
    assert parse_work_message(encode_work_message(job), work_headers(job, tenant="t1")) == (
        WorkMessage(job_id=JOB_ID, tenant_id="t1", request_id="req-1")
    )


@pytest.mark.parametrize("tenant", [None, "", 7, b"t1"])
def test_a_tenant_that_is_no_text_is_none(tenant: object) -> None:
    assert parse_work_message(vectors.WORK_BODY, {"X-Tenant-ID": tenant}).tenant_id is None


@pytest.mark.parametrize("headers", [{}, {"X-Request-Id": 7}, {"X-Request-Id": ""}])
def test_a_message_without_request_id_gets_a_new_one(headers: dict[str, object]) -> None:
    # M30
    first = parse_work_message(vectors.WORK_BODY, headers).request_id
    second = parse_work_message(vectors.WORK_BODY, headers).request_id
    assert first != second
    assert uuid.UUID(first).version == 7


@pytest.mark.parametrize(
    "body", [b"{}", b'{"jobId":null}', b'{"jobId":""}', f'{{"jobId":"{ZERO_ID}"}}'.encode()]
)
def test_a_message_without_job_id_is_refused(body: bytes) -> None:
    # M2, M3
    with pytest.raises(JobIdRequired) as refused:
        parse_work_message(body, {"jobId": OTHER_ID})
    assert (refused.value.code, str(refused.value)) == ("FET-0051", "jobId is required")


@pytest.mark.parametrize(
    "rest",
    [
        "",  # M4
        ',"mappedFields":{}',
        ',"mappedFields":{"db":{}}',  # M5
        ',"mappedFields":["db"]',
        ',"filters":{"a":{"b":{"c":{"eq":"x"}}}}',  # M28
        ',"filters":{"a":{"b":{"c":{"eq":null,"unknown":["v"]}}}}',  # M29
    ],
)
def test_everything_but_the_job_id_is_the_records(rest: str) -> None:
    # design section 4, step 3: the worker takes everything else from the record, so what the
    # reference refuses with FET-0052, FET-0053 or a type error is a hint like any other
    assert job_id_in(f'{{"jobId":"{JOB_ID}"{rest}}}'.encode(), jobId=OTHER_ID) == str(JOB_ID)


@pytest.mark.parametrize(
    "body",
    [
        b"null",  # M6
        b"{broken",  # M7
        b"",
        b"[]",
        b'{"jobId":"not a uuid"}',
        b'{"jobId":7}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_the_header_names_the_job_of_an_unreadable_body(body: bytes) -> None:
    assert job_id_in(body, jobId=OTHER_ID) == OTHER_ID


def test_the_first_json_value_names_the_job_where_the_header_does_not() -> None:
    upper = str(JOB_ID).upper()
    assert job_id_in(f' {{"jobId":"{upper}"}} trailing'.encode()) == str(JOB_ID)


def test_the_raw_text_names_the_job_where_nothing_else_does() -> None:
    # M8
    assert job_id_in(f'{{broken "jobId" : "{JOB_ID}"'.encode()) == str(JOB_ID)
    blanks = " " * 10
    assert job_id_in(f'{{broken "jobId"{blanks}:{blanks}"{JOB_ID}"'.encode()) == str(JOB_ID)


@pytest.mark.parametrize(
    "body",
    [
        f'{{broken "jobId"{" " * 11}: "{JOB_ID}"',  # M9
        f'{{broken "jobId":{" " * 11}"{JOB_ID}"',
        f'{{broken "jobId":"{str(JOB_ID).upper()}"',  # M10
        f'{{broken "jobId":"{ZERO_ID}"',
        "{broken",  # M13
        "null",
    ],
)
def test_a_message_that_names_no_job_is_malformed(body: str) -> None:
    with pytest.raises(MalformedWorkMessage) as refused:
        parse_work_message(body.encode(), {})
    assert refused.value.code == "malformed"


def test_the_header_wins_only_where_the_body_cannot_be_read() -> None:
    # M11
    readable = f'{{"jobId":"{JOB_ID}"}}'
    assert job_id_in(readable.encode(), jobId=OTHER_ID) == str(JOB_ID)
    assert job_id_in(f"{readable} x".encode(), jobId=OTHER_ID) == OTHER_ID


@pytest.mark.parametrize("header", [7, b"x", "not a uuid", ZERO_ID, "{" + OTHER_ID + "}"])
def test_a_header_that_is_no_uuid_is_ignored(header: object) -> None:
    # M12
    assert job_id_in(f'{{"jobId":"{JOB_ID}"}} x'.encode(), jobId=header) == str(JOB_ID)


@given(
    st.binary(max_size=300), st.dictionaries(st.sampled_from(["jobId", "X-Tenant-ID"]), st.text())
)
def test_any_message_is_read_or_refused(body: bytes, headers: dict[str, object]) -> None:
    # M34
    try:
        message = parse_work_message(body, headers)
    except WorkMessageError:
        return
    assert message.job_id.int != 0
