"""The three messages: their types, and what a type cannot say."""

from typing import Any, Final

from fetcher.domain.jobs import Operator
from fetcher.domain.message_bodies import CompletedBody, ErrorBody, FailedBody, WorkBody
from scripts.message_documents.types import Schema, schema_of

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
UUID_TEXT: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
HEX_64: Final = "^[0-9a-f]{64}$"
TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$"

_JOB_ID: Final = {"pattern": UUID_TEXT, "description": "The job."}
_METADATA: Final = {"description": "What the caller gave with the request, unchanged."}

_WORK: Final = {
    "createdAt": {"pattern": TIME, "description": "When the job was created; workers ignore it."},
    "jobId": _JOB_ID,
    "mappedFields": {"description": "Config name to table to fields.", "minProperties": 1},
    "metadata": _METADATA,
    "filters": {
        "description": "Config name to table to field to operator to values; absent where none.",
        "minProperties": 1,
    },
}
_COMPLETED: Final = {
    "jobId": _JOB_ID,
    "metadata": _METADATA,
    "executionTimeMs": {
        "minimum": 0,
        "description": "From the message's start to the end. Absent means 0 (the reference).",
    },
    "completedAt": {"pattern": TIME},
    "result.path": {"description": "The object's key in the bucket, prefix included."},
    "result.sizeBytes": {"minimum": 0, "description": "Of the opened document."},
    "result.rowCount": {"minimum": 0, "description": "Absent means 0 (the reference)."},
    "result.hmac": {
        "pattern": HEX_64,
        "description": "HMAC-SHA256 of the opened document, by the external key.",
    },
    "result.integrity.signature": {"pattern": HEX_64},
    "result.protection.keyVersion": {"description": "Which key sealed it; ours alone."},
}
_FAILED: Final = {
    "jobId": _JOB_ID,
    "metadata": {"description": "What the caller gave, and `error`.", "required": ["error"]},
}
_ERROR: Final = {
    "message": {"maxLength": 2000, "description": "Redacted, in words."},
    "code": {"description": "Stable; `cancelled` for a cancelled job."},
    "source": {"description": "The config name of the source."},
}


def work_message() -> Schema:
    schema = _detailed(schema_of(WorkBody), _WORK)
    fields = schema["properties"]["filters"]
    for _ in range(3):
        fields = fields["additionalProperties"]
    fields["propertyNames"] = {"enum": [operator.value for operator in Operator]}
    return _titled("Work message", schema)


def job_completed() -> Schema:
    return _titled("job.completed", _detailed(schema_of(CompletedBody), _COMPLETED))


def job_failed() -> Schema:
    schema = _detailed(schema_of(FailedBody), _FAILED)
    error = _detailed(schema_of(ErrorBody), _ERROR)
    schema["properties"]["metadata"]["properties"] = {"error": error}
    return _titled("job.failed", schema)


SCHEMAS: Final = {
    "work-message": work_message,
    "job-completed": job_completed,
    "job-failed": job_failed,
}


def _titled(title: str, schema: Schema) -> Schema:
    return {"$schema": DIALECT, "title": title, **schema}


def _detailed(schema: Schema, details: dict[str, Any]) -> Schema:
    """Raise KeyError for a detail of a member that the type does not have."""
    for path, told in details.items():
        place = schema
        for name in path.split("."):
            place = place["properties"][name]
        place.update(told)
    return schema
