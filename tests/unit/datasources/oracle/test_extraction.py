"""From a request as users write it to the document, through the Engine and the registry."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from fetcher.compat import SourceNames, normalized_request
from fetcher.datasources.engines import RequestEngines, SourceSettings
from fetcher.datasources.oracle.session import SNAPSHOT
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.ids import new_connection_id
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ErrorCategory, ExtractionRequest, TenantContext
from tests.unit.datasources.oracle.fake_driver import (
    ADDRESS,
    STAFF,
    Answer,
    FakeDatabase,
    Row,
    a_catalogue,
    driver_error,
)

TENANT = TenantContext.new("default")
NOW = datetime(2031, 1, 1, tzinfo=UTC)
RUNS: list[Row] = [
    ("OPS", "RUNS", "ID", "NUMBER", None, 22, 10, 0, "N"),
    ("OPS", "RUNS", "Started", "DATE", None, 7, None, None, "N"),
]
TWINS: list[Row] = [
    ("HR", "TWINS", name, "VARCHAR2", None, 10, None, None, "Y") for name in ("Amount", "amount")
]


def a_connection() -> Connection:
    return Connection(
        id=new_connection_id(),
        config_name="ora",
        type=SourceType.ORACLE,
        host=ADDRESS,
        port=1521,
        database_name="ignored",
        username="hr",
        password_encrypted="sealed",
        encryption_key_version="1",
        created_at=NOW,
        updated_at=NOW,
        metadata={"serviceName": "ORDERS"},
    )


async def extracted(
    tables: dict[str, tuple[str, ...]], filters: dict[str, Any] | None = None
) -> dict[str, Any]:
    asked = {"ora": tables}
    fields, conditions = normalized_request(
        asked, {"ora": filters or {}}, {"ora": SourceNames("ORACLE")}
    )
    engines = RequestEngines(SourceSettings(decrypt=lambda *_: "secret"))
    engine = engines.engine_for([a_connection()], JobOptions(), asked)
    request = ExtractionRequest(mapped_fields=fields, filters=conditions)
    plan = await engine.plan_extraction(TENANT, request)
    result = await engine.execute_extraction(plan)
    assert result.direct is not None
    found: dict[str, Any] = json.loads(result.direct.data)
    return found


async def test_own_and_other_tables_of_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed owners, an own-schema prefix, names in any case: keys are the catalogue's spelling."""
    answers = [
        *a_catalogue([*STAFF, *RUNS], [("HR", "STAFF", "ID")]),
        Answer('SELECT t."ID", t."NAME" FROM "HR"."STAFF" t WHERE t."PAY" >= :1', [("7", "x")]),
        Answer('SELECT t."ID" FROM "HR"."STAFF"', [("8",)]),
        Answer("SELECT TO_CHAR", [(" 2031-04-05T06:07:08",)]),
    ]
    database = FakeDatabase(answers=answers).install(monkeypatch)
    found = await extracted(
        {"hr.staff": ("id",), "staff": ("name", "id"), "Ops.Runs": ("started",)},
        {"staff": {"pay": {"gte": [1]}}},
    )
    assert found == {
        "ora": {
            "HR.STAFF": [{"ID": 8}],
            "OPS.RUNS": [{"Started": "2031-04-05T06:07:08Z"}],
            "STAFF": [{"ID": 7, "NAME": "x"}],
        }
    }
    assert all(connection.is_closed for connection in database.connections)
    assert all(peer.recv(1) == b"" for peer in database.peers)


async def test_all_fields_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [*a_catalogue(STAFF), Answer("SELECT t.", [("7", "x", "1.5")])]
    FakeDatabase(answers=answers).install(monkeypatch)
    assert await extracted({"staff": ("*",)}) == {
        "ora": {"STAFF": [{"ID": 7, "NAME": "x", "PAY": "1.50"}]}
    }


def refusing_a_snapshot(code: int) -> list[Answer]:
    return [
        Answer(SNAPSHOT, error=driver_error(code)),
        *a_catalogue(STAFF),
        Answer("SELECT t.", [("7",)]),
    ]


def told(logs: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    return [
        (entry["log_level"], entry["event"], entry["source"])
        for entry in logs
        if entry.get("snapshot") is False
    ]


@pytest.mark.parametrize("code", [900, 922, 3001, 16000])
async def test_a_server_that_refuses_a_snapshot_is_read_without_one_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    FakeDatabase(answers=refusing_a_snapshot(code)).install(monkeypatch)
    with capture_logs() as logs:
        assert await extracted({"staff": ("id",)}) == {"ora": {"STAFF": [{"ID": 7}]}}
    assert told(logs) == [("warning", "snapshot_refused", "ora")]


@pytest.mark.parametrize(("code", "reason"), [(1033, "starting_up"), (1555, "conflict")])
async def test_a_snapshot_that_fails_otherwise_fails_the_job(
    monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    FakeDatabase(answers=refusing_a_snapshot(code)).install(monkeypatch)
    with capture_logs() as logs, pytest.raises(EngineError) as caught:
        await extracted({"staff": ("id",)})
    assert (caught.value.stage, caught.value.reason) == ("session", reason)
    assert told(logs) == []


async def test_a_column_as_it_was_written_is_the_one_that_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [*a_catalogue(TWINS), Answer('SELECT t."amount"', [("right",)])]
    FakeDatabase(answers=answers).install(monkeypatch)
    assert await extracted({"twins": ("amount",)}) == {"ora": {"TWINS": [{"amount": "right"}]}}


@pytest.mark.parametrize(
    "tables",
    [
        {"twins": ("AMOUNT",)},
        {"twins": ("Amount", "amount")},
        {'staff"': ("ID",)},
        {"ghost": ("ID",)},
    ],
)
async def test_what_is_ambiguous_or_unknown_fails_the_plan(
    tables: dict[str, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeDatabase(answers=a_catalogue([*STAFF, *TWINS])).install(monkeypatch)
    with pytest.raises(EngineError) as caught:
        await extracted(tables)
    assert caught.value.category is ErrorCategory.VALIDATION
