"""pymongo's exceptions as ours (spec rest-api 6.3)."""

import pytest
import trio
from bson.errors import InvalidBSON, InvalidDocument
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ExecutionTimeout,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WaitQueueTimeoutError,
    WriteError,
    WTimeoutError,
)

from fetcher.adapters.mongo.failures import NeverSent, NotStorable, translate
from fetcher.api.problems import problem_of
from fetcher.domain.errors import OperationRefused, PortError, PortUnavailable

CANARY = "s3cr3t-canary mongodb://kim:pw@db.internal"


def bulk(**codes: int) -> BulkWriteError:
    """Of several writes, by what failed of them."""
    return BulkWriteError(
        {what: [{"code": code, "errmsg": CANARY}] for what, code in codes.items()}
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AutoReconnect(CANARY), PortUnavailable),
        (NetworkTimeout(CANARY), PortUnavailable),
        (NotPrimaryError(CANARY), PortUnavailable),
        (WaitQueueTimeoutError(CANARY), PortUnavailable),
        (ServerSelectionTimeoutError(CANARY), NeverSent),
        (ExecutionTimeout(CANARY, 50), PortUnavailable),
        (WTimeoutError(CANARY, 64), PortUnavailable),
        (ConnectionResetError(CANARY), PortUnavailable),
        (trio.TooSlowError(CANARY), PortUnavailable),
        (bulk(writeConcernErrors=189), PortUnavailable),
        (bulk(writeErrors=10107), PortUnavailable),
        *((OperationFailure(CANARY, code), PortUnavailable) for code in (6, 7, 50, 89, 91)),
        *((OperationFailure(CANARY, code), PortUnavailable) for code in (189, 10107, 11600)),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__,
)
def test_what_passes_is_503(error: PyMongoError, kind: type[PortError]) -> None:
    failure = translate(error)
    assert type(failure) is kind
    problem = problem_of(failure)
    assert (problem.status, problem.body["code"]) == (503, "FET-0003")
    assert problem.headers["Retry-After"] == "5"
    assert "canary" not in f"{failure!r}{problem}"


@pytest.mark.parametrize(
    "error",
    [
        *(OperationFailure(CANARY, code) for code in (None, 2, 9, 13, 18, 26)),
        WriteError(CANARY, 121),
        bulk(writeErrors=121, writeConcernErrors=189),
        BulkWriteError({}),
        InvalidBSON(CANARY),
    ],
    ids=lambda error: f"{type(error).__name__}-{getattr(error, 'code', '')}",
)
def test_what_stays_is_500_and_actors_still_wait(error: PyMongoError) -> None:
    failure = translate(error)
    assert type(failure) is OperationRefused
    assert isinstance(failure, PortUnavailable)
    problem = problem_of(failure)
    assert (problem.status, problem.body["code"]) == (500, "FET-0002")
    assert "Retry-After" not in problem.headers
    assert "canary" not in f"{failure!r}{problem}"


@pytest.mark.parametrize(
    "error",
    [
        InvalidDocument(CANARY),
        OperationFailure(CANARY, 10334),
        OperationFailure(CANARY, 17420),
        UnicodeEncodeError("utf-8", CANARY, 0, 1, CANARY),
        RecursionError(CANARY),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_cannot_be_stored_is_500(error: Exception) -> None:
    failure = translate(error)
    assert type(failure) is NotStorable
    assert problem_of(failure).status == 500
    assert "canary" not in repr(failure)
