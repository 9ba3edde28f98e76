"""The names of keys (spec rest-api 12.4)."""

from typing import Final

LIMITER: Final = "fetcher:ratelimit:connection-test:"
SCHEMA: Final = "fetcher:schema:"


def tenant_prefix(tenant_id: str) -> str:
    """Raise ValueError for an id with a colon: its keys could be another tenant's."""
    if not tenant_id or ":" in tenant_id:
        raise ValueError("the tenant's id cannot be a part of a key")
    return f"tenant:{tenant_id}:"


def limiter_key(key: str) -> bytes:
    """For a limiter's key, ``<id>`` or ``tenant:<tenantID>:<id>``; raise ValueError."""
    tenant_id, name = _parted(key)
    if tenant_id is None:
        return _encoded(f"{LIMITER}{key}")
    return _encoded(f"{tenant_prefix(tenant_id)}{LIMITER}{name}")


def tenant_of(key: str) -> str:
    """Whose limiter's key it is; empty where there are no tenants."""
    return _parted(key)[0] or ""


def schema_key(tenant_id: str, config_name: str, *, single_tenant: str | None) -> bytes:
    """``single_tenant`` is the id that stands for there being no tenants; raise ValueError."""
    prefix = "" if tenant_id == single_tenant else tenant_prefix(tenant_id)
    return _encoded(f"{prefix}{SCHEMA}{config_name}")


def _parted(key: str) -> tuple[str | None, str]:
    word, _, rest = key.partition(":")
    if word != "tenant":
        return None, key
    tenant_id, _, name = rest.partition(":")
    return tenant_id, name


def _encoded(name: str) -> bytes:
    # what UTF-8 cannot say must not look like a Redis that cannot be reached
    return name.encode(errors="surrogatepass")
