"""Rules between settings: each returns lines that name the setting and say the rule."""

import re
from collections.abc import Mapping

from fetcher.crypto.keys import (
    KeyRing,
    MasterKeyError,
    PreviousKeysMalformed,
    generate_master_key,
)
from fetcher.settings.access_rules import access_rules
from fetcher.settings.host_entries import is_port
from fetcher.settings.model import DeploymentMode, Role, Settings
from fetcher.settings.mongo_address import AddressInvalid, compose_uri, hosts_of, uses_tls
from fetcher.settings.redis_rules import redis_rules

LOG_LEVELS = ("debug", "info", "warn", "error", "dpanic", "panic", "fatal")
LOG_ENCODINGS = ("json", "console")
MAX_WORKERS = 1000
MAX_QUEUE_NAME_BYTES = 200
"""AMQP has 255 for a name, and the consumer's own is the queue's with an id behind it."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
UPLOAD_SECONDS = 60.0
"""What an upload may take after the run limit, for the check of the broker's ack timeout."""


def all_rules(settings: Settings, role: Role, environment: Mapping[str, str]) -> list[str]:
    return [
        *_key_rules(settings),
        *_address_rules(settings),
        *_log_rules(settings),
        *_broker_rules(settings),
        *_embedded_rules(settings, role),
        *_streaming_rules(settings, role, environment),
        *_storage_rules(settings),
        *redis_rules(settings),
        *_tls_rules(settings),
        *_timing_rules(settings, role),
        *_guard_rules(settings),
        *access_rules(settings, role),
        *_later_rules(settings),
    ]


def _key_rules(settings: Settings) -> list[str]:
    """The keys are read as the start reads them; the data folder may keep the master itself."""
    master = settings.app_enc_key.get_secret_value()
    if not master and settings.needs_data_folder:
        master = generate_master_key()
    try:
        KeyRing.from_text(
            master,
            version=settings.app_enc_key_version,
            previous=settings.app_enc_key_previous.get_secret_value(),
        )
    except PreviousKeysMalformed as refused:
        return [f"APP_ENC_KEY_PREVIOUS: {refused}"]
    except MasterKeyError as refused:
        return [f"APP_ENC_KEY: {refused}"]
    return []


def _address_rules(settings: Settings) -> list[str]:
    _, colon, port = settings.listen_address.rpartition(":")
    if not colon or not (port == "0" or is_port(port)):
        return ["SERVER_ADDRESS: must be host:port or :port"]
    return []


def _broker_rules(settings: Settings) -> list[str]:
    """A blank user or password is refused: the client library would try ``guest`` instead."""
    problems = [
        f"{name}: at most {MAX_QUEUE_NAME_BYTES} bytes, without control characters"
        for name, value in (
            ("RABBITMQ_FETCHER_WORK_QUEUE", settings.work_queue),
            ("RABBITMQ_JOB_EVENTS_EXCHANGE", settings.events_exchange),
        )
        if len(value.encode()) > MAX_QUEUE_NAME_BYTES or CONTROL.search(value)
    ]
    if settings.rabbitmq_numbers_of_workers > MAX_WORKERS:
        problems.append(f"RABBITMQ_NUMBERS_OF_WORKERS: must be at most {MAX_WORKERS}")
    if settings.queue_is_embedded:
        return problems
    given = {
        "RABBITMQ_DEFAULT_USER": settings.rabbitmq_default_user,
        "RABBITMQ_DEFAULT_PASS": settings.rabbitmq_default_pass.get_secret_value(),
    }
    required = [f"{name}: required with RabbitMQ" for name, value in given.items() if not value]
    return problems + required


def _log_rules(settings: Settings) -> list[str]:
    problems: list[str] = []
    if settings.log_level and settings.log_level.strip().lower() not in LOG_LEVELS:
        problems.append(f"LOG_LEVEL: must be one of {', '.join(LOG_LEVELS)}")
    if settings.log_encoding and settings.log_encoding.strip().lower() not in LOG_ENCODINGS:
        problems.append(f"LOG_ENCODING: must be one of {', '.join(LOG_ENCODINGS)}")
    return problems


def _embedded_rules(settings: Settings, role: Role) -> list[str]:
    problems: list[str] = []
    missing = [
        name
        for name, embedded in (
            ("MONGO_HOST", settings.record_store_is_embedded),
            ("RABBITMQ_HOST", settings.queue_is_embedded),
            ("OBJECT_STORAGE_BUCKET", settings.object_store_is_embedded and role.works),
        )
        if embedded
    ]
    if settings.deployment_mode is not DeploymentMode.LOCAL:
        mode = settings.deployment_mode.value
        problems += [f"{name}: required when DEPLOYMENT_MODE={mode}" for name in missing]
    elif role is not Role.ALL:
        problems += [
            f"{name}: required with --role={role.value}: embedded parts need --role=all"
            for name in missing
        ]
    if not settings.record_store_is_embedded:
        if not settings.mongo_name:
            problems.append("MONGO_NAME: required with MongoDB")
        if settings.mongo_port and not is_port(settings.mongo_port):
            problems.append("MONGO_PORT: must be a port number")
    return problems


def _streaming_rules(settings: Settings, role: Role, environment: Mapping[str, str]) -> list[str]:
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
    elif len(source.encode()) > 2048 or CONTROL.search(source):
        problems.append(
            "STREAMING_CLOUDEVENTS_SOURCE: at most 2048 bytes, without control characters"
        )
    return problems


def _storage_rules(settings: Settings) -> list[str]:
    key_id = settings.object_storage_access_key_id.get_secret_value()
    secret = settings.object_storage_secret_key.get_secret_value()
    problems: list[str] = []
    if bool(key_id) != bool(secret):
        problems.append(
            "OBJECT_STORAGE_ACCESS_KEY_ID: set it and OBJECT_STORAGE_SECRET_KEY, or neither"
        )
    prefix = settings.object_storage_key_prefix
    if settings.object_store_is_embedded and not is_folder_prefix(prefix):
        problems.append(
            "OBJECT_STORAGE_KEY_PREFIX: must name folders inside of the object folder"
            " (set OBJECT_STORAGE_BUCKET to use any text)"
        )
    endpoint = settings.object_storage_endpoint
    if endpoint and not endpoint.lower().startswith(("http://", "https://")):
        problems.append("OBJECT_STORAGE_ENDPOINT: must begin with http:// or https://")
    return problems


def is_folder_prefix(prefix: str) -> bool:
    """Whether a key with this prefix is a path that stays inside of the object folder."""
    parts = f"{prefix}external-data".split("/")
    plain = all(part not in ("", ".", "..", ".uploads") for part in parts)
    short = all(len(part.encode()) <= 255 for part in parts)
    return plain and short and not CONTROL.search(prefix) and "\\" not in prefix


def _tls_rules(settings: Settings) -> list[str]:
    """Spec configuration 4: SaaS mode takes no plain text, elsewhere it must be allowed."""
    saas = settings.deployment_mode is DeploymentMode.SAAS
    problems: list[str] = []
    plain: list[str] = []
    if not settings.record_store_is_embedded and not mongo_uses_tls(settings):
        plain.append("mongodb")
    if not settings.queue_is_embedded and settings.rabbitmq_uri.lower() != "amqps":
        plain.append("rabbitmq")
    if settings.redis_host and not settings.redis_tls:
        plain.append("redis")
    if saas:
        if settings.object_storage_endpoint.lower().startswith("http://"):
            plain.append("s3")
        problems += [
            "DEPLOYMENT_MODE: SaaS mode requires TLS on all platform dependencies:"
            f" {name} is not using TLS (DEPLOYMENT_MODE=saas)"
            for name in plain
        ]
        if settings.allow_insecure_tls:
            problems.append("ALLOW_INSECURE_TLS: refused with DEPLOYMENT_MODE=saas")
        if settings.datasource_sqlite_dir is not None:
            problems.append("DATASOURCE_SQLITE_DIR: refused with DEPLOYMENT_MODE=saas")
    elif not settings.allow_insecure_tls:
        problems += [
            f"ALLOW_INSECURE_TLS: {name} has no TLS (set ALLOW_INSECURE_TLS=true to allow that)"
            for name in plain
        ]
    if settings.rabbitmq_uri.lower() not in ("amqp", "amqps"):
        problems.append("RABBITMQ_URI: must be amqp or amqps")
    return problems


def mongo_uri(settings: Settings) -> str:
    """The whole address: as it was given, or composed from its parts."""
    whole = settings.mongo_uri.get_secret_value()
    if "://" in whole:
        return whole
    return compose_uri(
        scheme=whole or "mongodb",
        host=settings.mongo_host,
        port=int(settings.mongo_port) if is_port(settings.mongo_port) else None,
        user=settings.mongo_user,
        password=settings.mongo_password.get_secret_value(),
        parameters=settings.mongo_parameters,
    )


def mongo_hosts(settings: Settings) -> tuple[str, ...]:
    """The hosts of the record store's address, without ports; none where it is embedded."""
    if settings.record_store_is_embedded:
        return ()
    return hosts_of(mongo_uri(settings))


def mongo_uses_tls(settings: Settings) -> bool:
    try:
        return uses_tls(mongo_uri(settings))
    except AddressInvalid:
        return False


def _timing_rules(settings: Settings, role: Role) -> list[str]:
    if settings.queue_is_embedded or not role.works:
        return []
    needed = settings.engine_timeout_sec + UPLOAD_SECONDS + settings.shutdown_job_wait_sec + 60
    if settings.rabbitmq_consumer_timeout_sec < needed:
        return [
            "RABBITMQ_CONSUMER_TIMEOUT_SEC: must be at least run limit + upload + shutdown wait"
            f" + 60 s = {needed:g}"
        ]
    return []


def _guard_rules(settings: Settings) -> list[str]:
    """A list of what is forbidden must not lie there without effect."""
    if settings.guards_hosts:
        return []
    given = {
        "DATASOURCE_HOST_DENY": settings.datasource_host_deny,
        "DATASOURCE_PORT_DENY": settings.datasource_port_deny,
    }
    problems = [
        f"{name}: has no effect without DATASOURCE_HOST_GUARD=on"
        for name, text in given.items()
        if text.strip()
    ]
    if settings.multi_tenant_enabled:
        problems.append("DATASOURCE_HOST_GUARD: must be on with MULTI_TENANT_ENABLED=true")
    return problems


def _later_rules(settings: Settings) -> list[str]:
    if settings.multi_tenant_enabled:
        return ["MULTI_TENANT_ENABLED: this version serves a single tenant only"]
    return []
