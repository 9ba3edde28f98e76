"""What is told of each failure: spec rest-api 6, decisions on categories and error codes."""

import pytest
from werkzeug.exceptions import BadRequest, NotFound, RequestEntityTooLarge, RequestTimeout

from fetcher.api.problems import ENGINE_CATEGORIES, STATUS, problem_of
from fetcher.domain.errors import (
    DuplicateActiveJob,
    DuplicateConfigName,
    FetcherError,
    ObjectNotFound,
    PortError,
    PortUnavailable,
    RecordCorrupt,
    Unroutable,
)
from fetcher_engine import EngineError, ErrorCategory, Stage


@pytest.mark.parametrize(
    ("category", "status", "code", "error_code"),
    [
        (ErrorCategory.VALIDATION, 400, "FET-0401", "FET-0401"),
        (ErrorCategory.NOT_FOUND, 404, "FET-1001", "FET-1001"),
        (ErrorCategory.UNAUTHORIZED, 401, "FET-0006", "FET-0006"),
        (ErrorCategory.FORBIDDEN, 403, "FET-0007", "FET-0007"),
        (ErrorCategory.LIMIT_EXCEEDED, 422, "FET-1061", "FET-1061"),
        (ErrorCategory.CONFLICT, 409, "FET-0004", "FET-0004"),
        (ErrorCategory.UNAVAILABLE, 503, "FET-0003", "FET-0003"),
        (ErrorCategory.CONNECT, 502, 502, "engine_connect"),
        (ErrorCategory.TIMEOUT, 504, 504, "engine_timeout"),
        (ErrorCategory.CANCELED, 499, 499, "engine_canceled"),
        (ErrorCategory.INTERNAL, 500, "FET-0002", "FET-0002"),
    ],
)
def test_each_engine_category_has_its_status(
    category: ErrorCategory, status: int, code: object, error_code: str
) -> None:
    problem = problem_of(EngineError(category, "text of the engine", RuntimeError("secret")))
    assert (problem.status, problem.body["code"]) == (status, code)
    assert problem.body["errorCode"] == error_code
    assert "secret" not in repr(problem)


def test_every_engine_category_is_mapped() -> None:
    assert set(ENGINE_CATEGORIES) == set(ErrorCategory)


@pytest.mark.parametrize("category", list(ErrorCategory))
def test_test_of_a_connection_keeps_the_wire_s_status(category: ErrorCategory) -> None:
    problem = problem_of(EngineError(category, "x"), operation="test_connection")
    assert (problem.status, problem.body["code"]) == (500, 500)
    assert problem.body["title"] == "Database Connection Error"


@pytest.mark.parametrize(
    ("error", "title"),
    [
        (EngineError(ErrorCategory.CONNECT, "x"), "Database Connection Error"),
        (EngineError(ErrorCategory.TIMEOUT, "x", stage=Stage.TCP), "Database Connection Error"),
        (EngineError(ErrorCategory.TIMEOUT, "x", stage=Stage.SESSION), "Database Connection Error"),
        (
            EngineError(ErrorCategory.UNAVAILABLE, "x", stage=Stage.AUTH),
            "Database Connection Error",
        ),
        (EngineError(ErrorCategory.TIMEOUT, "x", stage=Stage.SCHEMA), "Schema Retrieval Error"),
        (EngineError(ErrorCategory.UNAVAILABLE, "x"), "Schema Retrieval Error"),
    ],
)
def test_schema_tells_connecting_from_reading(error: EngineError, title: str) -> None:
    problem = problem_of(error, operation="get_connection_schema")
    assert (problem.status, problem.body["code"], problem.body["title"]) == (500, 500, title)


def test_safe_words_of_a_source_are_told() -> None:
    error = EngineError(
        ErrorCategory.CONNECT, "x", source="sales_db", stage=Stage.TLS, reason="tls_required"
    )
    body = problem_of(error).body
    assert (body["source"], body["stage"], body["reason"]) == ("sales_db", "tls", "tls_required")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PortUnavailable("host pg7"), 503, "FET-0003"),
        (Unroutable("queue q7"), 503, "FET-0003"),
        (DuplicateConfigName("n7"), 409, "FET-1002"),
        (DuplicateActiveJob("n7"), 409, "FET-0004"),
        (ObjectNotFound("k7"), 404, "FET-0005"),
        (RecordCorrupt("f7"), 500, "FET-0002"),
        (PortError("x7"), 500, "FET-0002"),
    ],
)
def test_each_port_error_has_its_code_and_tells_nothing_more(
    error: PortError, status: int, code: str
) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.body["code"], problem.body["errorCode"]) == (status, code, code)
    assert "7" not in str(problem.body["message"])
    assert ("Retry-After" in problem.headers) == (status == 503)


@pytest.mark.parametrize(
    ("error", "status", "error_code", "message"),
    [
        (NotFound(), 404, "route_not_found", "Cannot GET /x"),
        (RequestTimeout(), 408, "request_timeout", "Request Timeout"),
        (RequestEntityTooLarge(), 413, "request_too_large", "Request Entity Too Large"),
        (BadRequest(), 400, "http_400", "Bad Request"),
    ],
)
def test_framework_errors_have_the_framework_s_body(
    error: Exception, status: int, error_code: str, message: str
) -> None:
    problem = problem_of(error, path="GET /x")
    assert problem.body == {
        "code": status,
        "title": "request_failed",
        "message": message,
        "errorCode": error_code,
    }
    assert problem.status == status


def test_refusal_carries_its_fields() -> None:
    error = FetcherError(
        "FET-0402", "Missing Fields in Request", "m", fields={"port": "is required"}
    )
    problem = problem_of(error)
    assert problem.body["fields"] == {"port": "is required"}
    assert "entityType" not in problem.body


def test_wait_of_a_refusal_becomes_a_header() -> None:
    error = FetcherError("429", "Rate Limit Exceeded", "m", retry_after_seconds=3)
    problem = problem_of(error)
    assert (problem.status, problem.body["code"]) == (429, 429)
    assert problem.headers == {"Retry-After": "3"}


def test_anything_else_is_an_internal_error() -> None:
    problem = problem_of(RuntimeError("secret"))
    assert (problem.status, problem.body["code"]) == (500, "FET-0002")
    assert "secret" not in repr(problem)


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_code_has_a_status_of_failure(code: str) -> None:
    assert problem_of(FetcherError(code, "t", "m")).status == STATUS[code] >= 400
