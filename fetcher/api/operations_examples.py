"""Bodies of the operators' routes to show in the API document, by their models."""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from fetcher.api.models.audit import AuditListAnswer
from fetcher.api.models.dead_letters import DeadLettersAnswer, RedriveAnswer, RedriveRequest
from fetcher.api.models.operations import (
    ActivityAnswer,
    ActorsAnswer,
    BreakersAnswer,
    DependenciesAnswer,
    JobsAnswer,
    OutboxAnswer,
    QueuesAnswer,
)

_ID: Final = "0195a3f2-6b1e-7c40-9d52-3f8e0a6b7c11"
_TIME: Final = "2026-03-14T09:26:53.5Z"
_MINUTE: Final = "2026-03-14T09:26:00Z"
_PROCESS: Final = {
    "host": "fetcher-manager-6d4f",
    "pid": 7,
    "role": "manager",
    "version": "v1.0.0",
    "startedAt": "2026-03-14T08:00:00Z",
}

OPERATIONS_EXAMPLES: Final[Mapping[type[BaseModel] | None, object]] = {
    AuditListAnswer: {
        "items": [
            {
                "id": _ID,
                "time": _TIME,
                "actor": "acme/jane",
                "action": "result.downloaded",
                "target": "0195a3f2-6b1e-7c40-9d52-3f8e0a6b7c12",
                "product": "acme-reports",
                "requestId": "req-77",
                "outcome": "succeeded",
            }
        ],
        "limit": 20,
    },
    DependenciesAnswer: {
        "process": _PROCESS,
        "draining": False,
        "dependencies": [
            {
                "name": "mongodb",
                "status": "up",
                "optional": False,
                "probedAt": _TIME,
                "latencyMs": 3,
                "tls": True,
                "history": [{"minute": _MINUTE, "probes": 4, "failures": 0, "slowestMs": 9}],
            }
        ],
    },
    QueuesAnswer: {
        "queues": [
            {
                "name": "fetcher.extract-external-data.queue",
                "purpose": "work",
                "ready": 12,
                "consumers": 2,
            },
            {"name": "fetcher.dlq", "purpose": "dead_letters", "ready": 1, "consumers": 0},
        ]
    },
    OutboxAnswer: {
        "pendingEvents": 2,
        "oldestEventSeconds": 1.25,
        "undispatchedJobs": 0,
        "oldestUndispatchedSeconds": 0.0,
        "dispatchedJobs": 12,
        "oldestDispatchedSeconds": 41.5,
    },
    JobsAnswer: {
        "counts": {
            "pending": 13,
            "processing": 1,
            "completed": 940,
            "failed": 3,
            "cancelled": 0,
            "parked": 1,
            "countedUpTo": 100000,
        },
        "running": [
            {
                "id": _ID,
                "status": "processing",
                "source": "acme-reports",
                "connections": ["sales_db"],
                "createdAt": _TIME,
                "startedAt": _TIME,
                "owner": "fetcher-worker-58c9:7",
                "leaseUntil": "2026-03-14T09:27:53.5Z",
                "attempt": 1,
                "takeovers": 0,
                "rows": 125000,
                "bytes": 9000000,
            }
        ],
        "waiting": [],
        "failed": [],
    },
    ActivityAnswer: {
        "minutes": [
            {
                "minute": _MINUTE,
                "completed": 17,
                "failed": 1,
                "cancelled": 0,
                "averageSeconds": 2.125,
                "longestSeconds": 9.5,
            }
        ]
    },
    BreakersAnswer: {
        "process": _PROCESS,
        "adapters": [{"name": "rabbitmq_work", "state": "closed"}],
        "connections": [
            {
                "connectionId": _ID,
                "configName": "sales_db",
                "stage": "tcp",
                "reason": "refused",
                "failures": 5,
                "openings": 1,
                "changedAt": _TIME,
                "retryAt": "2026-03-14T09:27:20Z",
            }
        ],
        "openConnections": 1,
    },
    ActorsAnswer: {
        "process": _PROCESS,
        "actors": [{"name": "dispatcher", "state": "running", "restarts": 0}],
    },
    DeadLettersAnswer: {
        "total": 1,
        "examined": 1,
        "letters": [
            {
                "position": 1,
                "jobId": _ID,
                "genuine": True,
                "reason": "delivery_limit",
                "exchange": "",
                "routingKey": "fetcher.extract-external-data.queue",
                "sentAt": _TIME,
                "bytes": 812,
            }
        ],
    },
    RedriveRequest: {"reason": "delivery_limit", "limit": 100},
    RedriveAnswer: {
        "dispatched": 1,
        "letters": [{"position": 1, "jobId": _ID, "result": "dispatched"}],
    },
}
