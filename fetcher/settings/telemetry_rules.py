"""Whether spans can be sent as they are asked to be (spec configuration 3, row M4)."""

import re
from typing import Final
from urllib.parse import urlsplit

from fetcher.settings.model import Settings

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}=[\x21-\x7e][\x20-\x7e]{0,4096}")
_PRODUCTION: Final = frozenset({"production", "prod"})
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"


def telemetry_rules(settings: Settings) -> list[str]:
    if not settings.enable_telemetry:
        return []
    problems = _endpoint_problems(settings)
    if any(_HEADER.fullmatch(each) is None for each in header_texts(settings)):
        problems.append("OTEL_EXPORTER_OTLP_HEADERS: must be name=value,name=value")
    is_production = settings.otel_resource_deployment_environment.strip().lower() in _PRODUCTION
    is_plain = collector_url(settings).startswith("http://")
    if is_production and is_plain and not settings.allow_insecure_otel:
        problems.append(
            f"{_ENDPOINT}: an exporter without TLS is refused in production"
            " (set ALLOW_INSECURE_OTEL to allow that)"
        )
    return problems


def _endpoint_problems(settings: Settings) -> list[str]:
    if not settings.otel_exporter_otlp_endpoint.strip():
        return [f"{_ENDPOINT}: must be set where ENABLE_TELEMETRY=true"]
    try:
        parts = urlsplit(collector_url(settings))
        is_address = bool(parts.hostname) and parts.port != 0 and collector_url(settings).isascii()
    except ValueError:
        is_address = False
        parts = urlsplit("")
    if not is_address or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        return [f"{_ENDPOINT}: must be host:port, http://… or https://…"]
    if "@" in parts.netloc:
        return [f"{_ENDPOINT}: must hold no user; see OTEL_EXPORTER_OTLP_HEADERS"]
    return []


def collector_url(settings: Settings) -> str:
    """With its scheme, and without a slash at its end."""
    endpoint = settings.otel_exporter_otlp_endpoint.strip().rstrip("/")
    scheme, separator, rest = endpoint.partition("://")
    if not separator:
        return f"http://{endpoint}"
    return f"http://{rest}" if settings.otel_insecure_exporter else f"{scheme.lower()}://{rest}"


def header_texts(settings: Settings) -> list[str]:
    """Each as ``name=value``."""
    sent = settings.otel_exporter_otlp_headers.get_secret_value()
    return [each.strip() for each in sent.split(",") if each.strip()]
