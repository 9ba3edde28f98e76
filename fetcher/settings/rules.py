"""Rules between settings: each returns lines that name the setting and say the rule."""

from collections.abc import Mapping

from fetcher.crypto.keys import (
    KeyRing,
    MasterKeyError,
    PreviousKeysMalformed,
    decode_master_key,
    generate_master_key,
)
from fetcher.settings.access_rules import access_rules
from fetcher.settings.broker_rules import CONTROL, broker_rules, streaming_rules, timing_rules
from fetcher.settings.host_entries import is_port
from fetcher.settings.model import DeploymentMode, Role, Settings
from fetcher.settings.mongo_rules import mongo_rules
from fetcher.settings.redis_rules import redis_rules
from fetcher.settings.retention_rules import retention_rules
from fetcher.settings.telemetry_rules import telemetry_rules
from fetcher.settings.tenant_rules import tenant_rules
from fetcher.settings.tls_rules import tls_rules

LOG_LEVELS = ("debug", "info", "warn", "error", "dpanic", "panic", "fatal")
LOG_ENCODINGS = ("json", "console")


def all_rules(settings: Settings, role: Role, environment: Mapping[str, str]) -> list[str]:
    """In the order of the start's steps (spec configuration 3.2, 3.3)."""
    return [
        *_log_rules(settings),
        *telemetry_rules(settings),
        *tenant_rules(settings, role),
        *access_rules(settings, role),
        *_guard_rules(settings),
        *tls_rules(settings),
        *_embedded_rules(settings, role),
        *mongo_rules(settings),
        *_key_rules(settings, role),
        *broker_rules(settings),
        *redis_rules(settings),
        *_storage_rules(settings),
        *streaming_rules(settings, role, environment),
        *_lease_rules(settings),
        *timing_rules(settings, role),
        *retention_rules(settings),
        *_address_rules(settings, role),
    ]


def _key_rules(settings: Settings, role: Role) -> list[str]:
    """The keys are read as the start reads them; the data folder may keep the master itself.

    Not for one role alone: the other would not have the same.
    """
    master = settings.app_enc_key.get_secret_value()
    may_be_made = not master and settings.needs_data_folder and role is Role.ALL
    problems: list[str] = []
    try:
        decode_master_key(generate_master_key() if may_be_made else master)
    except MasterKeyError as refused:
        problems.append(f"APP_ENC_KEY: {refused}")
    try:
        KeyRing.from_text(
            # Former keys are judged whatever is wrong with the one in use.
            generate_master_key() if may_be_made or problems else master,
            version=settings.app_enc_key_version,
            previous=settings.app_enc_key_previous.get_secret_value(),
        )
    except PreviousKeysMalformed as refused:
        problems.append(f"APP_ENC_KEY_PREVIOUS: {refused}")
    return problems


def _lease_rules(settings: Settings) -> list[str]:
    if settings.job_lease_renew_sec + settings.job_lease_margin_sec < settings.job_lease_sec:
        return []
    return ["JOB_LEASE_SEC: must be longer than JOB_LEASE_RENEW_SEC + JOB_LEASE_MARGIN_SEC"]


def _address_rules(settings: Settings, role: Role) -> list[str]:
    host, colon, port = settings.listen_address.rpartition(":")
    if not colon or not (port == "0" or is_port(port)):
        return ["SERVER_ADDRESS: must be host:port or :port"]
    listens_twice = role is Role.ALL and settings.has_health_port(role)
    # The health port is one of IPv4, on every interface.
    is_ipv6_alone = host.startswith("[")
    if listens_twice and int(port) == settings.health_address_port and not is_ipv6_alone:
        name = "SERVER_ADDRESS" if settings.server_address else "SERVER_PORT"
        return [
            f"{name}: {int(port)} is HEALTH_PORT too: with --role=all each needs a port of its own"
        ]
    return []


def _log_rules(settings: Settings) -> list[str]:
    problems: list[str] = []
    if settings.log_level and settings.log_level.strip().lower() not in LOG_LEVELS:
        problems.append(f"LOG_LEVEL: must be one of {', '.join(LOG_LEVELS)}")
    if settings.log_encoding and settings.log_encoding.strip().lower() not in LOG_ENCODINGS:
        problems.append(f"LOG_ENCODING: must be one of {', '.join(LOG_ENCODINGS)}")
    return problems


def _embedded_rules(settings: Settings, role: Role) -> list[str]:
    """Embedded parts are for one local process of all roles; a real part needs its address."""
    if settings.multi_tenant_enabled:
        # the Tenant Manager tells each tenant's places
        return []
    parts = (
        ("MONGO_HOST", "RECORD_STORE", settings.record_store, settings.record_store_is_embedded),
        ("RABBITMQ_HOST", "QUEUE_BACKEND", settings.queue_backend, settings.queue_is_embedded),
        *(
            [
                (
                    "OBJECT_STORAGE_BUCKET",
                    "OBJECT_STORE",
                    settings.object_store,
                    settings.object_store_is_embedded,
                )
            ]
            if role.works
            else []
        ),
    )
    if settings.deployment_mode is not DeploymentMode.LOCAL:
        reason = f"when DEPLOYMENT_MODE={settings.deployment_mode.value}"
    elif role is not Role.ALL:
        reason = f"with --role={role.value}: embedded parts need --role=all"
    else:
        reason = ""
    problems = [
        f"{switch}: {chosen} is refused {reason}" if chosen else f"{address}: required {reason}"
        for address, switch, chosen, is_embedded in parts
        if is_embedded and reason
    ]
    given = {
        "MONGO_HOST": settings.mongo_host or "://" in settings.mongo_uri.get_secret_value(),
        "RABBITMQ_HOST": settings.rabbitmq_host,
        "OBJECT_STORAGE_BUCKET": settings.object_storage_bucket,
    }
    problems += [
        f"{address}: required with {switch}={chosen}"
        for address, switch, chosen, is_embedded in parts
        if not is_embedded and not given[address]
    ]
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
