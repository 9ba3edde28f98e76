"""GET /v1/operations/audit: filters, pages, refusals."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fetcher.domain.audit import AuditAction, AuditEntry
from fetcher.domain.timestamps import rfc3339
from tests.contract.records.test_audit_trail import an_entry
from tests.unit.api.harness import START, Api, an_api
from tests.unit.api.operations_room import told

AUDIT = "/v1/operations/audit"


async def an_api_with_entries(*entries: AuditEntry) -> Api:
    api = an_api()
    for entry in entries:
        await api.records.audit.append(entry)
    return api


def at(seconds: int, **changes: Any) -> AuditEntry:
    return an_entry(time=START.replace(microsecond=0) - timedelta(seconds=seconds), **changes)


async def test_an_entry_is_told_with_all_of_it() -> None:
    entry = at(0, target="t-1")
    body = await told(await an_api_with_entries(entry), "audit")
    assert body == {
        "items": [
            {
                "id": str(entry.id),
                "time": rfc3339(entry.time),
                "actor": "acme/ü",
                "action": "job.created",
                "target": "t-1",
                "product": "Reporting",
                "requestId": "req-1",
                "outcome": "succeeded",
            }
        ],
        "limit": 20,
    }


async def test_pages_go_on_where_the_one_before_ended() -> None:
    entries = [at(n // 2) for n in range(7)]
    api = await an_api_with_entries(*entries)
    found: list[str] = []
    cursor = ""
    for _ in range(3):
        body = await told(api, f"audit?limit=3&cursor={cursor}")
        found += [each["id"] for each in body["items"]]
        cursor = body.get("nextCursor", "")
    assert cursor == ""
    in_order = sorted(entries, key=lambda entry: (entry.time, entry.id), reverse=True)
    assert found == [str(entry.id) for entry in in_order]


@pytest.mark.parametrize(
    ("query", "changes"),
    [
        ("actor=acme%2Fjane", {"actor": "acme/jane"}),
        ("action=result.downloaded", {"action": AuditAction.RESULT_DOWNLOADED}),
        ("target=t-9", {"target": "t-9"}),
        ("target=t-9&actor=x", {"target": "t-9", "actor": "x"}),
    ],
)
async def test_filters_choose(query: str, changes: dict[str, Any]) -> None:
    wanted = replace(at(5), **changes)
    api = await an_api_with_entries(at(1), wanted, at(9))
    body = await told(api, f"audit?{query}")
    assert [each["id"] for each in body["items"]] == [str(wanted.id)]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "FET-0405"),
        ("limit=101", "FET-0406"),
        ("action=job.exploded", "FET-0405"),
        (f"actor={'x' * 257}", "FET-0405"),
        ("target=a%00b", "FET-0405"),
        ("cursor=nonsense", "FET-0405"),
        (f"cursor={'_' * 32}", "FET-0405"),
    ],
)
async def test_what_cannot_be_asked_is_refused(query: str, code: str) -> None:
    answered = await an_api().get(f"{AUDIT}?{query}")
    assert (answered.status, answered.json["code"]) == (400, code)


async def test_reading_the_trail_leaves_no_entry() -> None:
    api = an_api()
    for _ in range(2):
        assert (await told(api, "audit"))["items"] == []
