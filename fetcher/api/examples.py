"""Bodies to show in the API document, by their models."""

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from fetcher.api.models.connections import (
    ConnectionAnswer,
    ConnectionListAnswer,
    ConnectionSchemaAnswer,
    ConnectionTestAnswer,
    CreateConnectionRequest,
    PatchConnectionRequest,
)
from fetcher.api.models.job_answers import (
    CancelJobAnswer,
    CreateJobAnswer,
    JobAnswer,
    JobListAnswer,
)
from fetcher.api.models.job_validation import ValidJobAnswer
from fetcher.api.models.jobs import CreateJobRequest
from fetcher.api.models.results import PreviewAnswer
from fetcher.api.models.schema_validation import (
    SchemaMismatchAnswer,
    SchemaValidAnswer,
    ValidateSchemaRequest,
)
from fetcher.api.models.system import (
    HealthBody,
    ReadinessBody,
    TenantReadinessBody,
    VersionBody,
)
from fetcher.api.operations_examples import OPERATIONS_EXAMPLES

ID: Final = "0195a3f2-6b1e-7c40-9d52-3f8e0a6b7c11"

_MAPPED_FIELDS: Final = {"sales_db": {"orders": ["id", "total"], "public.customers": ["id"]}}
_FILTERS: Final = {"sales_db": {"orders": {"total": {"gte": [100]}, "status": {"in": ["paid"]}}}}
_METADATA: Final = {"source": "acme-reports", "correlationId": "r-77"}
_CREATED: Final = "2026-03-14T09:26:53.5Z"
_ENDED: Final = "2026-03-14T09:26:58.231Z"
_SETTINGS: Final = {
    "configName": "sales_db",
    "type": "POSTGRESQL",
    "host": "pg1.acme.test",
    "port": 5432,
    "databaseName": "sales",
    "schema": "public",
    "userName": "reader",
    "metadata": {"team": "bi"},
}
_CONNECTION: Final = {
    "id": ID,
    "productName": "acme-reports",
    **_SETTINGS,
    "ssl": {"mode": "require"},
    "createdAt": _CREATED,
    "updatedAt": _CREATED,
}
_SUMMARY: Final = {
    "id": ID,
    "status": "completed",
    "createdAt": _CREATED,
    "startedAt": _CREATED,
    "completedAt": _ENDED,
    "sizeBytes": 18234,
    "rowCount": 512,
}

EXAMPLES: Final[Mapping[type[BaseModel] | None, object]] = {
    CreateConnectionRequest: {**_SETTINGS, "password": "s3cret", "ssl": {"mode": "require"}},
    PatchConnectionRequest: {"host": "pg2.acme.test", "metadata": {"team": "bi"}},
    ConnectionAnswer: _CONNECTION,
    ConnectionListAnswer: {"items": [_CONNECTION], "page": 1, "limit": 10, "total": 1},
    ConnectionTestAnswer: {
        "status": "success",
        "message": "Connection successful",
        "latencyMs": 12,
    },
    ConnectionSchemaAnswer: {
        "id": ID,
        "configName": "sales_db",
        "databaseName": "sales",
        "type": "POSTGRESQL",
        "tables": [{"name": "orders", "fields": ["id", "total"]}],
    },
    ValidateSchemaRequest: {"mappedFields": _MAPPED_FIELDS},
    SchemaValidAnswer: {
        "status": "success",
        "message": "All data sources, tables and fields exist",
    },
    SchemaMismatchAnswer: {
        "code": "FET-1060",
        "title": "Schema validation failed",
        "message": "1 of what was asked for does not exist",
        "errorCode": "FET-1060",
        "errors": [
            {
                "type": "FIELD_NOT_FOUND",
                "dataSourceId": "sales_db",
                "table": "orders",
                "field": "totl",
            }
        ],
    },
    CreateJobRequest: {
        "dataRequest": {"mappedFields": _MAPPED_FIELDS, "filters": _FILTERS},
        "metadata": _METADATA,
    },
    ValidJobAnswer: {
        "valid": True,
        "sources": {
            "sales_db": {
                "type": "POSTGRESQL",
                "tables": {
                    "orders": {"fields": ["id", "total"], "estimatedRows": 1200},
                    "public.customers": {"fields": ["id"]},
                },
            }
        },
        "limits": {
            "maxDatasources": 10,
            "maxTablesPerDatasource": 20,
            "maxFieldsPerTable": 50,
            "maxConcurrency": 4,
            "timeout": 300,
            "maxResultBytes": 268435456,
        },
        "requestHash": "a3d9" * 16,
    },
    CreateJobAnswer: {
        "jobId": ID,
        "status": "pending",
        "createdAt": _CREATED,
        "message": "Job created and queued for processing",
    },
    JobAnswer: {
        **_SUMMARY,
        "metadata": _METADATA,
        "mappedFields": _MAPPED_FIELDS,
        "filters": _FILTERS,
        "resultPath": f"external-data/{ID}.json",
        "resultHmac": "5f1c" * 16,
        "requestHash": "a3d9" * 16,
    },
    JobListAnswer: {
        "items": [{**_SUMMARY, "source": "acme-reports", "connections": ["sales_db"]}],
        "limit": 10,
    },
    CancelJobAnswer: {"jobId": ID, "status": "cancelled", "message": "Job cancelled"},
    PreviewAnswer: {
        "jobId": ID,
        "limit": 100,
        "rowCounts": {"sales_db": {"orders": 1}},
        "rows": {"sales_db": {"orders": [{"id": 9007199254740993, "total": "19.90"}]}},
    },
    HealthBody: {"status": "healthy"},
    ReadinessBody: {
        "status": "healthy",
        "checks": {"mongodb": {"status": "up", "latency_ms": 3, "tls": True}},
        "version": "v1.0.0",
        "deployment_mode": "local",
    },
    TenantReadinessBody: {"error": "multi-tenant mode is disabled"},
    VersionBody: {"version": "v1.0.0", "requestDate": _CREATED},
    **OPERATIONS_EXAMPLES,
}
