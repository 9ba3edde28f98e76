"""docs/schemas and docs/asyncapi.yaml: what the code says, and what it sends."""

import gzip
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]  # comes with jsonschema-path

from fetcher.domain.jobs import FailureFacts
from fetcher.domain.terminal_event import (
    JOB_CANCELLED,
    completed_mark,
    event_headers,
    failed_mark,
)
from fetcher.domain.work_message import encode_work_message, work_headers
from scripts.message_documents.__main__ import DOCS, texts
from scripts.message_documents.asyncapi import document
from scripts.message_documents.types import schema_of
from tests.unit.crypto import vectors
from tests.unit.domain.builders import COMPLETED_AT, JOB_ID, a_job, result_facts

GOLDEN = Path(__file__).parents[2] / "golden" / "asyncapi" / "3.0.0.json.gz"
FILTERS = {
    "db": {"t": {"f": {"eq": (1, "a", None, True), "between": (1, 2)}, "g": {"is_null": ()}}}
}
FAILURE = FailureFacts(message="x", code="connect", source="db", stage="tls", reason="expired")


def schema(name: str) -> Any:
    return json.loads((DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


def closed(schema_: Any) -> Any:
    """The same, without room for members that it does not describe."""
    if isinstance(schema_, list):
        return [closed(each) for each in schema_]
    if not isinstance(schema_, dict):
        return schema_
    inner = {name: closed(each) for name, each in schema_.items()}
    if isinstance(schema_.get("properties"), dict) and "title" not in schema_["properties"]:
        inner.setdefault("additionalProperties", False)
    return inner


def errors(schema_: Any, document_: Any) -> list[str]:
    jsonschema.Draft7Validator.check_schema(schema_)
    return [error.message for error in jsonschema.Draft7Validator(schema_).iter_errors(document_)]


def test_the_files_are_what_the_code_says() -> None:
    """Else: ``make docs``."""
    written = texts()
    assert {path: (DOCS / path).read_text(encoding="utf-8") for path in written} == written
    assert {path.name for path in (DOCS / "schemas").iterdir()} == {
        path.name for path in written if path.parent.name == "schemas"
    }


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("work-message", vectors.WORK_BODY),
        ("job-completed", vectors.COMPLETED_BODY),
        ("job-failed", vectors.FAILED_BODY),
        ("work-message", encode_work_message(a_job(filters=FILTERS))),
        ("work-message", encode_work_message(a_job(metadata={}))),
        (
            "job-completed",
            completed_mark(
                a_job(), result_facts(row_count=0), completed_at=COMPLETED_AT, execution_ms=0
            ).payload,
        ),
    ],
)
def test_golden_messages_and_our_own_hold_no_member_that_is_not_described(
    name: str, body: bytes | str
) -> None:
    document_ = json.loads(body)
    assert errors(schema(name), document_) == []
    strict = closed(schema(name))
    if name == "job-failed":
        # the rest of the metadata is the caller's
        del strict["properties"]["metadata"]["additionalProperties"]
    assert errors(strict, document_) == []


@pytest.mark.parametrize("failure", [FAILURE, JOB_CANCELLED])
def test_failed_events_are_described_to_the_last_member(failure: FailureFacts) -> None:
    mark = failed_mark(a_job(metadata={}), failure, at=COMPLETED_AT)
    assert errors(closed(schema("job-failed")), json.loads(mark.payload)) == []


def without(path: str) -> Callable[[Any], None]:
    def change(document_: Any) -> None:
        *places, last = path.split(".")
        for name in places:
            document_ = document_[name]
        del document_[last]

    return change


def having(path: str, value: object) -> Callable[[Any], None]:
    def change(document_: Any) -> None:
        *places, last = path.split(".")
        for name in places:
            document_ = document_[name]
        document_[last] = value

    return change


@pytest.mark.parametrize(
    ("name", "body", "change"),
    [
        ("work-message", vectors.WORK_BODY, without("jobId")),
        ("work-message", vectors.WORK_BODY, having("jobId", "7")),
        ("work-message", vectors.WORK_BODY, having("mappedFields", {})),
        ("work-message", vectors.WORK_BODY, having("mappedFields", {"db": ["t"]})),
        ("work-message", vectors.WORK_BODY, having("filters", {"d": {"t": {"f": {"near": []}}}})),
        ("work-message", vectors.WORK_BODY, having("filters", {"d": {"t": {"f": {"eq": 1}}}})),
        ("job-completed", vectors.COMPLETED_BODY, without("result.path")),
        ("job-completed", vectors.COMPLETED_BODY, having("result.hmac", "AB" * 32)),
        ("job-completed", vectors.COMPLETED_BODY, having("result.sizeBytes", "103")),
        ("job-completed", vectors.COMPLETED_BODY, having("status", "failed")),
        ("job-completed", vectors.COMPLETED_BODY, having("completedAt", "2026-03-14 09:26")),
        ("job-failed", vectors.FAILED_BODY, without("metadata.error")),
        ("job-failed", vectors.FAILED_BODY, having("metadata.error", "text")),
    ],
)
def test_what_is_no_such_message_is_refused(
    name: str, body: bytes, change: Callable[[Any], None]
) -> None:
    document_ = json.loads(body)
    assert errors(schema(name), document_) == []
    change(document_)
    assert errors(schema(name), document_) != []


def test_a_member_that_is_new_is_no_error() -> None:
    document_ = json.loads(vectors.COMPLETED_BODY)
    document_["result"]["new"] = document_["new"] = 1
    assert errors(schema("job-completed"), document_) == []


def headers_of(message: str) -> Any:
    return document()["components"]["messages"][message]["headers"]


def as_read(headers: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value.decode() if isinstance(value, bytearray) else value
        for name, value in headers.items()
    }


def test_the_headers_that_are_sent_are_the_ones_that_are_described() -> None:
    signed = {"x-message-signature": "a" * 64, "t": "1773480413", "signature-version": "v1"}
    work = {**as_read(work_headers(a_job())), **signed}
    assert errors(closed(headers_of("work")), work) == []
    del work["t"]
    assert errors(headers_of("work"), work) == ["'t' is a required property"]
    for message, mark in (
        ("jobFailed", failed_mark(a_job(), FAILURE, at=datetime(2026, 1, 1, tzinfo=UTC))),
        (
            "jobCompleted",
            completed_mark(a_job(), result_facts(), completed_at=COMPLETED_AT, execution_ms=1),
        ),
    ):
        sent = event_headers(JOB_ID, mark, source="//s", request_id="1")
        read = {**as_read(sent), **signed}
        assert errors(closed(headers_of(message)), read) == []
        other = "jobFailed" if message == "jobCompleted" else "jobCompleted"
        assert errors(headers_of(other), read) != []


def parsed() -> Any:
    return yaml.safe_load((DOCS / "asyncapi.yaml").read_text(encoding="utf-8"))


def test_the_asyncapi_document_is_one() -> None:
    meta = json.loads(gzip.decompress(GOLDEN.read_bytes()))
    assert parsed() == document()
    assert errors(meta, parsed()) == []
    for path, value in (
        ("channels.work.bindings.amqp.is", "pipe"),
        ("operations.takeJob.action", "take"),
        ("components.messages.work.headers", 7),
    ):
        broken = deepcopy(parsed())
        having(path, value)(broken)
        assert errors(meta, broken) != []


def test_every_reference_of_it_leads_somewhere() -> None:
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(each for name, each in value.items() if name == "$ref")
            for each in value.values():
                walk(each)

    walk(parsed())
    assert len(found) == 10
    for reference in found:
        if reference.startswith("#/"):
            place = parsed()
            for name in reference[2:].split("/"):
                place = place[name]
        else:
            assert (DOCS / reference).is_file()


def test_a_type_that_no_schema_says_is_an_error() -> None:
    with pytest.raises(TypeError, match="no schema"):
        schema_of(set[str])
