"""What tenants need (spec configuration 3.2, step 5), in the order in which it is told there."""

from urllib.parse import urlsplit

from fetcher.settings.certificates import ca_rules
from fetcher.settings.model import Role, Settings

REQUIRED = "required when MULTI_TENANT_ENABLED=true"
LISTENED_TO = ("staging", "production")


def tenant_rules(settings: Settings, role: Role) -> list[str]:
    if not settings.multi_tenant_enabled:
        if settings.metrics_tenant_label:
            return ["METRICS_TENANT_LABEL: has no effect without MULTI_TENANT_ENABLED=true"]
        return []
    problems = _address_rules(settings)
    if not settings.multi_tenant_service_api_key.get_secret_value():
        problems.append(f"MULTI_TENANT_SERVICE_API_KEY: {REQUIRED}")
    if not settings.multi_tenant_redis_host:
        purpose = "" if role.manages else " (used for tenant event-driven discovery)"
        problems.append(f"MULTI_TENANT_REDIS_HOST: {REQUIRED}{purpose}")
    elif not _is_host(settings.multi_tenant_redis_host.strip()):
        problems.append(
            "MULTI_TENANT_REDIS_HOST: must be a name or an address alone"
            " (its port is MULTI_TENANT_REDIS_PORT)"
        )
    problems += ca_rules("MULTI_TENANT_REDIS_CA_CERT", settings.multi_tenant_redis_ca_cert)
    if settings.multi_tenant_redis_ca_cert and not settings.multi_tenant_redis_tls:
        problems.append(
            "MULTI_TENANT_REDIS_CA_CERT: has no effect without MULTI_TENANT_REDIS_TLS=true"
        )
    name = "ENVIRONMENT_NAME" if settings.environment_name.strip() else "ENV_NAME"
    said = settings.environment_name.strip() or settings.env_name.strip()
    if said.lower() not in LISTENED_TO:
        problems.append(f'{name}: must be "staging" or "production" when MULTI_TENANT_ENABLED=true')
    return [*problems, *_shared_rules(settings, role)]


def _shared_rules(settings: Settings, role: Role) -> list[str]:
    """What all tenants would share, and what no tenant could be told from."""
    chosen = {
        "RECORD_STORE": settings.record_store == "sqlite",
        "QUEUE_BACKEND": settings.queue_backend == "memory",
        "OBJECT_STORE": settings.object_store == "folder",
        # each could read the others' files
        "DATASOURCE_SQLITE_DIR": settings.datasource_sqlite_dir is not None,
        # it names no tenant
        "FETCHER_ACCESS_TOKEN": bool(settings.fetcher_access_token.get_secret_value()),
    }
    problems = [
        f"{name}: refused with MULTI_TENANT_ENABLED=true" for name, is_so in chosen.items() if is_so
    ]
    if role.works and not settings.object_storage_bucket:
        problems.append(f"OBJECT_STORAGE_BUCKET: {REQUIRED}")
    return problems


def _is_host(host: str) -> bool:
    """A port follows one colon; an address of IPv6 has more of them, in brackets or not."""
    return "/" not in host and host.count(":") != 1 and "]:" not in host


def _address_rules(settings: Settings) -> list[str]:
    """The address is never repeated: somebody may put a password in."""
    address = settings.multi_tenant_url
    if not address:
        return [f"MULTI_TENANT_URL: {REQUIRED}"]
    try:
        parts = urlsplit(address)
        is_address = bool(parts.hostname) and parts.port != 0
        # paths are put behind it
        has_more = bool(parts.query or parts.fragment)
    except ValueError:
        return ["MULTI_TENANT_URL: must be an https:// address"]
    if not is_address or parts.scheme not in ("http", "https"):
        return ["MULTI_TENANT_URL: must be an https:// address"]
    if has_more:
        return ["MULTI_TENANT_URL: must be an address without query and fragment"]
    if parts.scheme == "http" and not settings.multi_tenant_allow_insecure_http:
        return [
            "MULTI_TENANT_URL: must be an https:// address"
            " (set MULTI_TENANT_ALLOW_INSECURE_HTTP=true to allow http://)"
        ]
    return []
