"""The broker and the events that go through it (spec configuration 2.3, 2.4)."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fetcher.settings.model import Role, Settings

MAX_WORKERS: Final = 1000
MAX_QUEUE_NAME_BYTES: Final = 200
"""AMQP has 255 for a name, and the consumer's own is the queue's with an id behind it."""
MAX_EXCHANGE_NAME_BYTES: Final = 127
"""What the AMQP client sends; RabbitMQ would take 255."""
OUR_QUEUES: Final = ("fetcher.dlq", "fetcher.job.completed.queue", "fetcher.job.failed.queue")
OUR_EXCHANGES: Final = ("fetcher.dlx", "fetcher.extract-external-data.exchange")
"""Fixed names of the topology: each has its own use already."""
MAX_SOURCE_BYTES: Final = 2048

UPLOAD_SECONDS: Final = 60.0
"""What an upload may take after the run limit, for the check of the broker's ack timeout."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_.:@#,/+ -]*", re.ASCII)
"""The AMQP client refuses other names, RabbitMQ does not."""
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def broker_rules(settings: Settings) -> list[str]:
    """A blank user or password is refused: the client library would try ``guest`` instead."""
    queue, exchange = settings.work_queue, settings.events_exchange
    problems = [
        *_name_problems("RABBITMQ_FETCHER_WORK_QUEUE", queue, MAX_QUEUE_NAME_BYTES, OUR_QUEUES),
        *_name_problems(
            "RABBITMQ_JOB_EVENTS_EXCHANGE", exchange, MAX_EXCHANGE_NAME_BYTES, OUR_EXCHANGES
        ),
    ]
    if settings.rabbitmq_uri.lower() not in ("amqp", "amqps"):
        problems.append("RABBITMQ_URI: must be amqp or amqps")
    if settings.rabbitmq_numbers_of_workers > MAX_WORKERS:
        problems.append(f"RABBITMQ_NUMBERS_OF_WORKERS: must be at most {MAX_WORKERS}")
    if settings.queue_is_embedded or settings.multi_tenant_enabled:
        return problems
    given = {
        "RABBITMQ_DEFAULT_USER": settings.rabbitmq_default_user,
        "RABBITMQ_DEFAULT_PASS": settings.rabbitmq_default_pass.get_secret_value(),
    }
    required = [f"{name}: required with RabbitMQ" for name, value in given.items() if not value]
    return problems + required


def _name_problems(setting: str, name: str, max_bytes: int, taken: Sequence[str]) -> list[str]:
    if len(name) > max_bytes or not _NAME.fullmatch(name):
        return [f"{setting}: at most {max_bytes} letters and digits of ASCII, blanks, _.:@#,/+-"]
    if name in taken:
        return [f"{setting}: {name} has another use already"]
    return []


def streaming_rules(settings: Settings, role: Role, environment: Mapping[str, str]) -> list[str]:
    if not role.works:
        return []
    exchange_said_blank = (
        "RABBITMQ_JOB_EVENTS_EXCHANGE" in environment
        and not environment["RABBITMQ_JOB_EVENTS_EXCHANGE"].strip()
    )
    enabled = settings.streaming_enabled
    if settings.queue_is_embedded:
        enabled = enabled is not False
        exchange_missing = exchange_said_blank
        source_missing = False
    else:
        exchange_missing = not settings.rabbitmq_job_events_exchange.strip()
        source_missing = not settings.streaming_cloudevents_source
    problems: list[str] = []
    if not enabled:
        problems.append(
            "STREAMING_ENABLED: STREAMING_ENABLED=true is required for mandatory job event"
            " notifications"
        )
    if exchange_missing:
        problems.append(
            "RABBITMQ_JOB_EVENTS_EXCHANGE: required for mandatory job event notifications"
        )
    source = settings.streaming_cloudevents_source
    if source_missing:
        problems.append(
            "STREAMING_CLOUDEVENTS_SOURCE: Event.Source required (CloudEvents ce-source)"
        )
    elif len(source.encode()) > MAX_SOURCE_BYTES or CONTROL.search(source):
        problems.append(
            "STREAMING_CLOUDEVENTS_SOURCE: at most 2048 bytes, without control characters"
        )
    return problems


def timing_rules(settings: Settings, role: Role) -> list[str]:
    if settings.queue_is_embedded or not role.works:
        return []
    needed = settings.engine_timeout_sec + UPLOAD_SECONDS + settings.shutdown_job_wait_sec + 60
    if settings.rabbitmq_consumer_timeout_sec < needed:
        return [
            "RABBITMQ_CONSUMER_TIMEOUT_SEC: must be at least run limit + upload + shutdown wait"
            f" + 60 s = {needed:.15g}"
        ]
    return []
