"""What the contract's checks let through, and that no fault of ours is among it."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.e2e.http_contract import hooks

LOOKED_AT = "looked at"


def a_case(path: str, query: dict[str, Any] | None = None) -> Any:
    parameters = [
        ("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
        ("sortOrder", {"enum": ["asc", "desc"]}),
        ("startDate", {"type": "string", "format": "date"}),
    ]
    declared = [SimpleNamespace(name=n, definition={"schema": s}) for n, s in parameters]
    return SimpleNamespace(operation=SimpleNamespace(path=path, query=declared), query=query)


@pytest.fixture(autouse=True)
def built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("not_a_server_error", "negative_data_rejection"):
        monkeypatch.setattr(hooks, name, lambda *_: LOOKED_AT)


@pytest.mark.parametrize(
    ("path", "code", "checked"),
    [
        ("/v1/management/connections/{id}/test", "engine_connect", None),
        ("/v1/management/connections/{id}/test", "engine_internal", LOOKED_AT),
        ("/v1/management/connections/{id}/test", "internal_error", LOOKED_AT),
        ("/v1/fetcher", "engine_connect", LOOKED_AT),
    ],
)
def test_source_s_failure_is_no_error_of_ours_and_a_fault_is(
    path: str, code: str, checked: str | None
) -> None:
    response: Any = SimpleNamespace(json=lambda: {"errorCode": code})
    checking: Any = None
    found: Any = hooks.no_error_of_ours(checking, response, a_case(path))
    assert found == checked


@pytest.mark.parametrize(
    ("query", "is_looked_at"),
    [
        ({"limit": ""}, False),
        ({"limit": ["x", "5"]}, False),
        ({"sortOrder": "DESC", "limit": "7"}, False),
        ({"sortOrder": "", "limit": "0"}, True),
        ({"sortOrder": "DESC", "startDate": "yesterday"}, True),
        ({"limit": ["5", "x"]}, True),
        ({"limit": "x"}, True),
        ({}, True),
    ],
)
def test_only_what_the_wire_reads_otherwise_makes_a_bad_request_good(
    query: dict[str, Any], is_looked_at: bool
) -> None:
    response: Any = SimpleNamespace(status_code=200)
    checking: Any = None
    looked_at: Any = hooks.bad_requests_are_refused(checking, response, a_case("/x", query))
    assert (looked_at == LOOKED_AT) is is_looked_at
