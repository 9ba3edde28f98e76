"""TLS to the platform's own dependencies (spec configuration 4); sources have their own rules."""

from collections.abc import Iterator
from dataclasses import dataclass

from fetcher.settings.model import DeploymentMode, Settings
from fetcher.settings.mongo_address import AddressInvalid
from fetcher.settings.mongo_rules import mongo_uses_tls


@dataclass(frozen=True, slots=True)
class Dependency:
    """By the name that readiness has for it."""

    name: str
    has_tls: bool


def dependencies(settings: Settings) -> Iterator[Dependency]:
    """What is set, in the order of the specification's table, in every role that has it.

    An address that cannot be parsed is left out: it has a refusal of its own. What each tenant has
    of its own is judged when it is opened; only SaaS mode wants to hear of TLS before.
    """
    has_tenants = settings.multi_tenant_enabled
    has_records = not (settings.record_store_is_embedded or has_tenants)
    records_have_tls = _mongo_tls(settings) if has_records else None
    if records_have_tls is not None:
        yield Dependency("mongodb", records_have_tls)
    if has_tenants and settings.deployment_mode is DeploymentMode.SAAS:
        yield Dependency("rabbitmq", settings.rabbitmq_tls)
    elif not has_tenants and not settings.queue_is_embedded:
        yield Dependency("rabbitmq", settings.rabbitmq_uri.lower() == "amqps")
    if settings.uses_redis:
        yield Dependency("redis", settings.redis_tls)
    if has_tenants and settings.multi_tenant_redis_host:
        yield Dependency("multi_tenant_redis", settings.multi_tenant_redis_tls)
    if not settings.object_store_is_embedded:
        yield Dependency("s3", not settings.object_storage_endpoint.lower().startswith("http://"))
    if has_tenants and settings.multi_tenant_url:
        yield Dependency(
            "tenant_manager", not settings.multi_tenant_url.lower().startswith("http://")
        )


def _mongo_tls(settings: Settings) -> bool | None:
    try:
        return mongo_uses_tls(settings)
    except AddressInvalid:
        return None


def tls_rules(settings: Settings) -> list[str]:
    """SaaS mode takes no plain text, whatever is permitted; elsewhere it must be permitted."""
    plain = [each.name for each in dependencies(settings) if not each.has_tls]
    if settings.deployment_mode is DeploymentMode.SAAS:
        return [
            *(
                "DEPLOYMENT_MODE: SaaS mode requires TLS on all platform dependencies:"
                f" {name} is not using TLS (DEPLOYMENT_MODE=saas)"
                for name in plain
            ),
            *_refused_in_saas_mode(settings),
        ]
    if settings.allow_insecure_tls:
        return []
    return [
        f"ALLOW_INSECURE_TLS: {name} has no TLS (set ALLOW_INSECURE_TLS=true to allow that)"
        for name in plain
        # its own switch permits it: MULTI_TENANT_ALLOW_INSECURE_HTTP
        if name != "tenant_manager"
    ]


def _refused_in_saas_mode(settings: Settings) -> list[str]:
    given = {
        "ALLOW_INSECURE_TLS": settings.allow_insecure_tls,
        "MULTI_TENANT_ALLOW_INSECURE_HTTP": settings.multi_tenant_allow_insecure_http,
        "DATASOURCE_SQLITE_DIR": settings.datasource_sqlite_dir is not None,
    }
    return [
        f"{name}: refused with DEPLOYMENT_MODE=saas" for name, is_set in given.items() if is_set
    ]
