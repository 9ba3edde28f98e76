"""The broker, and the events that go through it."""

import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, SecretStr

from fetcher.settings.fields import (
    MOST_SECONDS,
    WORKER,
    Allowed,
    Boolean,
    Example,
    NoEffect,
    SettingsGroup,
    Unset,
    positive_or_default,
)

DEFAULT_WORK_QUEUE = "fetcher.extract-external-data.queue"
DEFAULT_EVENTS_EXCHANGE = "fetcher.job.events"

_POLICY: Final = re.compile(r".+\.(enabled|direct|outbox|dlq)=.+")


def checked_policies(text: str) -> str:
    """Raise ValueError for an entry that is no rule of the reference's."""
    entries = (entry.strip() for entry in text.split(","))
    if not all(_POLICY.fullmatch(entry) for entry in entries if entry):
        raise ValueError(
            "must be event.key.attribute=value with commas between, the attribute one of"
            " enabled, direct, outbox, dlq"
        )
    return text


class BrokerSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Broker: RabbitMQ"

    rabbitmq_uri: Annotated[
        str,
        Field(description="The scheme alone: `amqps` is TLS"),
        Allowed("`amqp`, `amqps`"),
        Example("amqps"),
    ] = "amqp"
    rabbitmq_host: Annotated[
        str,
        Field(description="The broker"),
        Unset("the job table of the embedded record store is the queue"),
        Example("rabbitmq.example.com"),
    ] = ""
    rabbitmq_port_amqp: Annotated[
        int, Field(ge=1, le=65535, description="Its port"), Example("5671")
    ] = 5672
    rabbitmq_default_user: Annotated[
        str, Field(description="The user"), Unset("required with RabbitMQ"), Example("fetcher")
    ] = ""
    rabbitmq_default_pass: Annotated[
        SecretStr,
        Field(description="The user's password"),
        Unset("required with RabbitMQ"),
        Example(""),
    ] = SecretStr("")
    rabbitmq_fetcher_work_queue: Annotated[
        str,
        Field(description="The queue of jobs, the same in both roles"),
        Allowed("at most 200 letters and digits of ASCII, blanks and `_.:@#,/+-`"),
    ] = DEFAULT_WORK_QUEUE
    rabbitmq_job_events_exchange: Annotated[
        str,
        Field(description="The exchange of `job.completed` and `job.failed`"),
        Allowed("at most 127 letters and digits of ASCII, blanks and `_.:@#,/+-`; not blank"),
        Unset("required by a worker; embedded `fetcher.job.events`"),
        Example(DEFAULT_EVENTS_EXCHANGE),
    ] = ""
    rabbitmq_numbers_of_workers: Annotated[
        int,
        positive_or_default(5),
        Field(
            description="Jobs that one process runs at once; with tenants of all together, and 10"
            " of one at most"
        ),
        Allowed("1 to 1000; 0 or less: the default"),
        WORKER,
        Example("5"),
    ] = 5
    rabbitmq_consumer_timeout_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How long the broker waits for an acknowledgement (its own"
            " `consumer_timeout`, which cannot be asked for), in seconds. At least"
            " `ENGINE_TIMEOUT_SEC` + `SHUTDOWN_JOB_WAIT_SEC` + 120",
        ),
    ] = 1800.0
    rabbitmq_declare_topology: Annotated[
        Boolean,
        Field(description="Exchanges, queues and bindings that are missing are declared at start"),
    ] = False
    rabbitmq_events_require_route: Annotated[
        Boolean,
        Field(
            description="An event that no queue takes stays pending; `false`: it counts as"
            " published"
        ),
    ] = True
    rabbitmq_allow_legacy_body_signature_fallback: Annotated[
        Boolean,
        Field(
            description="Messages whose signature covers the body alone are taken too. While a"
            " queue still holds some"
        ),
        WORKER,
    ] = False
    rabbitmq_port_host: Annotated[
        str, Field(description="Port of the broker's management"), NoEffect()
    ] = ""
    rabbitmq_health_check_url: Annotated[
        str, Field(description="Address of the broker's management"), NoEffect()
    ] = ""


class EventSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Events"

    streaming_enabled: Annotated[
        Boolean | None,
        Field(description="Must be `true` in a worker: events are not optional"),
        WORKER,
        Unset("required by a worker; embedded `true`"),
        Example("true"),
    ] = None
    streaming_cloudevents_source: Annotated[
        str,
        Field(description="`ce-source` of every event, as it is"),
        Allowed("at most 2048 bytes, no control characters"),
        WORKER,
        Unset("required by a worker; embedded `//fetcher/local`"),
        Example("//example.fetcher/worker"),
    ] = ""
    outbox_repair_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How often events that are still due are looked for, in seconds",
        ),
        WORKER,
    ] = 30.0
    streaming_brokers: Annotated[
        str, Field(description="No such broker is contacted"), WORKER, NoEffect()
    ] = ""
    streaming_client_id: Annotated[
        str, Field(description="A client's name"), WORKER, NoEffect()
    ] = ""
    streaming_batch_linger_ms: Annotated[
        int, Field(ge=0, description="How long a batch waits"), WORKER, NoEffect()
    ] = 5
    streaming_batch_max_bytes: Annotated[
        int, Field(gt=0, description="A batch's size"), WORKER, NoEffect()
    ] = 1_048_576
    streaming_max_buffered_records: Annotated[
        int, Field(gt=0, description="Records that wait"), WORKER, NoEffect()
    ] = 10_000
    streaming_compression: Annotated[
        Literal["snappy", "lz4", "zstd", "gzip", "none"],
        Field(description="A batch's packing"),
        WORKER,
        NoEffect(),
    ] = "lz4"
    streaming_record_retries: Annotated[
        int, Field(ge=0, description="Attempts of a record"), WORKER, NoEffect()
    ] = 10
    streaming_record_delivery_timeout_s: Annotated[
        int, Field(gt=0, description="How long a record may take"), WORKER, NoEffect()
    ] = 30
    streaming_required_acks: Annotated[
        Literal["all", "leader", "none"], Field(description="Who confirms"), WORKER, NoEffect()
    ] = "all"
    streaming_cb_failure_ratio: Annotated[
        float, Field(ge=0, le=1, description="When a breaker opens"), WORKER, NoEffect()
    ] = 0.5
    streaming_cb_min_requests: Annotated[
        int, Field(ge=0, description="From how many requests on"), WORKER, NoEffect()
    ] = 10
    streaming_cb_timeout_s: Annotated[
        int, Field(ge=0, description="How long it stays open"), WORKER, NoEffect()
    ] = 30
    streaming_close_timeout_s: Annotated[
        int, Field(gt=0, description="How long closing may take"), WORKER, NoEffect()
    ] = 30
    streaming_event_policies: Annotated[
        str,
        AfterValidator(checked_policies),
        Field(description="Rules of single events"),
        WORKER,
        NoEffect(),
    ] = ""
