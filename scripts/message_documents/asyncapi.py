"""The AsyncAPI 3.0 document: channels, messages, and who sends what."""

from typing import Any, Final

from fetcher.adapters.amqp.topology import EVENTS_EXCHANGE, WORK_QUEUE
from fetcher.domain.terminal_event import COMPLETED, FAILED
from scripts.message_documents.headers import terminal_event_headers, work_message_headers
from scripts.message_documents.types import Schema

VERSION: Final = "3.0.0"
SCHEMA_FORMAT: Final = "application/schema+json;version=draft-07"
_AMQP_BINDING: Final = "0.3.0"


def document() -> dict[str, Any]:
    return {
        "asyncapi": VERSION,
        "info": {
            "title": "Fetcher's messages",
            "version": "1.0.0",
            "description": "Names of queue and exchange are the defaults; settings may change them."
            " Receivers ignore members and headers that they do not know.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            "work": _work_channel(),
            "jobCompleted": _event_channel(COMPLETED),
            "jobFailed": _event_channel(FAILED),
        },
        "operations": {
            "dispatchJob": _operation("send", "work", "A manager or worker dispatches a job."),
            "takeJob": _operation("receive", "work", "A worker takes a job; its record decides."),
            "publishCompleted": _operation("send", "jobCompleted", "A job has completed."),
            "publishFailed": _operation("send", "jobFailed", "A job has failed or was cancelled."),
        },
        "components": {
            "messages": {
                "work": _message("work-message", work_message_headers()),
                "jobCompleted": _message("job-completed", terminal_event_headers(COMPLETED)),
                "jobFailed": _message("job-failed", terminal_event_headers(FAILED)),
            }
        },
    }


def _work_channel() -> dict[str, Any]:
    queue = {"name": WORK_QUEUE, "durable": True, "exclusive": False, "autoDelete": False}
    return {
        "address": WORK_QUEUE,
        "description": "Through the default exchange, persistent, mandatory, confirmed.",
        "messages": {"work": {"$ref": "#/components/messages/work"}},
        "bindings": {
            "amqp": {
                "is": "queue",
                "queue": {**queue, "vhost": "/"},
                "bindingVersion": _AMQP_BINDING,
            }
        },
    }


def _event_channel(status: str) -> dict[str, Any]:
    name = f"job{status.capitalize()}"
    exchange = {"name": EVENTS_EXCHANGE, "type": "topic", "durable": True, "autoDelete": False}
    return {
        "address": f"job.{status}",
        "description": "A CloudEvent in binary mode, at least once, in no order among jobs.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        "bindings": {
            "amqp": {
                "is": "routingKey",
                "exchange": {**exchange, "vhost": "/"},
                "bindingVersion": _AMQP_BINDING,
            }
        },
    }


def _operation(action: str, channel: str, summary: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": summary,
        "bindings": {
            "amqp": {"deliveryMode": 2, "mandatory": True, "bindingVersion": _AMQP_BINDING}
            if action == "send"
            else {"ack": True, "bindingVersion": _AMQP_BINDING}
        },
    }


def _message(schema_name: str, headers: Schema) -> dict[str, Any]:
    return {
        "name": schema_name,
        "contentType": "application/json",
        "headers": headers,
        "payload": {
            "schemaFormat": SCHEMA_FORMAT,
            "schema": {"$ref": f"./schemas/{schema_name}.json"},
        },
    }
