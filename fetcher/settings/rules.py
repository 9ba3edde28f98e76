"""Rules between settings: each returns lines that name the setting and say the rule."""

import base64
import binascii
from collections.abc import Mapping

from fetcher.settings.model import DeploymentMode, Role, Settings
from fetcher.settings.mongo_address import AddressInvalid, compose_uri, uses_tls

LOG_LEVELS = ("debug", "info", "warn", "error", "dpanic", "panic", "fatal")
LOG_ENCODINGS = ("json", "console")
MIN_MASTER_KEY_BYTES = 32
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
        *_tls_rules(settings),
        *_timing_rules(settings, role),
        *_later_rules(settings),
    ]


def _key_rules(settings: Settings) -> list[str]:
    text = "".join(settings.app_enc_key.get_secret_value().split())
    if not text:
        if settings.needs_data_folder:
            return []
        return ["APP_ENC_KEY: master key too short: got 0 bytes, minimum 32 required"]
    try:
        length = len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return ["APP_ENC_KEY: invalid master key (base64)"]
    if length < MIN_MASTER_KEY_BYTES:
        return [f"APP_ENC_KEY: master key too short: got {length} bytes, minimum 32 required"]
    return []


def _address_rules(settings: Settings) -> list[str]:
    _, colon, port = settings.listen_address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        return ["SERVER_ADDRESS: must be host:port or :port"]
    return []


def _broker_rules(settings: Settings) -> list[str]:
    """A blank user or password is refused: the client library would try ``guest`` instead."""
    if settings.queue_is_embedded:
        return []
    given = {
        "RABBITMQ_DEFAULT_USER": settings.rabbitmq_default_user,
        "RABBITMQ_DEFAULT_PASS": settings.rabbitmq_default_pass.get_secret_value(),
    }
    return [f"{name}: required with RabbitMQ" for name, value in given.items() if not value]


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
        if settings.mongo_port and not settings.mongo_port.isdigit():
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
    elif len(source.encode()) > 2048 or any(ord(c) < 0x20 or ord(c) == 0x7F for c in source):
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
    endpoint = settings.object_storage_endpoint
    if endpoint and not endpoint.lower().startswith(("http://", "https://")):
        problems.append("OBJECT_STORAGE_ENDPOINT: must begin with http:// or https://")
    return problems


def _tls_rules(settings: Settings) -> list[str]:
    """Spec configuration 4: SaaS mode takes no plain text, elsewhere it must be allowed."""
    saas = settings.deployment_mode is DeploymentMode.SAAS
    problems: list[str] = []
    plain: list[str] = []
    if not settings.record_store_is_embedded and not mongo_uses_tls(settings):
        plain.append("mongodb")
    if not settings.queue_is_embedded and settings.rabbitmq_uri.lower() != "amqps":
        plain.append("rabbitmq")
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
        port=int(settings.mongo_port) if settings.mongo_port.isdigit() else None,
        user=settings.mongo_user,
        password=settings.mongo_password.get_secret_value(),
        parameters=settings.mongo_parameters,
    )


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


def _later_rules(settings: Settings) -> list[str]:
    problems: list[str] = []
    if settings.multi_tenant_enabled:
        problems.append("MULTI_TENANT_ENABLED: this version serves a single tenant only")
    if settings.plugin_auth_enabled:
        problems.append(
            "PLUGIN_AUTH_ENABLED: this version cannot ask the authorization service; it would"
            " serve without authorization"
        )
    return problems
