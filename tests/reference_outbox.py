"""Records of the reference's outbox as it writes them (spec worker-and-events 8.7)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from fetcher.domain.ids import uuid7

COLLECTION = "streaming_outbox_events"
AGGREGATE_ID = "ad9466d1-c6f9-5be3-98e4-bfc3b1341269"
SOURCE = "//acme.fetcher/worker-1"
EVENT_TIME = "2026-03-14T09:26:54.400000123Z"
MINUTE = timedelta(minutes=1)


def a_body(job_id: str, status: str = "completed") -> dict[str, Any]:
    body: dict[str, Any] = {
        "jobId": job_id,
        "metadata": {"source": "acme-reports", "share": 0.10, "note": "a < b"},
        "status": status,
    }
    if status == "completed":
        path = f"external-data/{job_id}.json"
        body["result"] = {"path": path, "sizeBytes": 103, "rowCount": 1, "hmac": "ab" * 32}
    return body


def an_envelope(
    job_id: str,
    status: str = "completed",
    *,
    exchange: str = "fetcher.job.events",
    body: Any = None,
    event: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """``event`` changes the event inside."""
    return {
        "version": 1,
        "route_key": f"job.{status}.rabbitmq",
        "definition_key": f"job.{status}",
        "target": "fetcher-job-events-rabbitmq",
        "transport": "rabbitmq",
        "destination": {"kind": "rabbitmq", "name": exchange, "address": f"job.{status}"},
        "aggregate_id": AGGREGATE_ID,
        "requirement": "required",
        "policy": {
            "enabled": True,
            "direct": "skip",
            "outbox": "always",
            "dlq": "on_routable_failure",
        },
        "event": {
            "TenantID": "single-tenant",
            "ResourceType": "job",
            "EventType": status,
            "EventID": f"fetcher.job.{status}.{job_id}",
            "SchemaVersion": "1.0.0",
            "Timestamp": EVENT_TIME,
            "Source": SOURCE,
            "Subject": job_id,
            "DataContentType": "application/json",
            "DataSchema": "",
            "SystemEvent": False,
            "Payload": a_body(job_id, status) if body is None else body,
        }
        | (event or {}),
    } | changes


def a_record(
    status: str,
    *,
    age: timedelta = timedelta(),
    payload: str | None = None,
    exchange: str = "fetcher.job.events",
    **changes: Any,
) -> dict[str, Any]:
    """``age`` counts to ``updated_at``."""
    at = datetime.now(UTC) - age
    held = {"claim_token": str(uuid4())} if status == "PROCESSING" else {}
    if status == "INVALID":
        held = {"last_error": "max dispatch attempts exceeded"}
    return (
        {
            "id": str(uuid7()),
            "event_type": "lerian.streaming.publish",
            "aggregate_id": AGGREGATE_ID,
            "payload": json.dumps(an_envelope(str(uuid7()), exchange=exchange))
            if payload is None
            else payload,
            "status": status,
            "attempts": 10 if status == "INVALID" else 0,
            "tenant_id": "single-tenant",
            "created_at": at - MINUTE,
            "updated_at": at,
        }
        | held
        | changes
    )


def event_id(record: dict[str, Any]) -> str:
    event = json.loads(record["payload"])["event"]
    return str(event["EventID"])
