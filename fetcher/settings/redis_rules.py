"""Where Redis is, and what is wrong with that (spec configuration 2.6)."""

import re
from typing import Final

from fetcher.settings.certificates import ca_pem, ca_rules
from fetcher.settings.model import Settings

_HOST: Final = re.compile(r"[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+", re.ASCII)
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)


def redis_place(settings: Settings) -> tuple[str, int]:
    """Host and port. ``REDIS_HOST`` may hold a port, then that one counts."""
    host, colon, port = settings.redis_host.strip().rpartition(":")
    if colon and (":" not in host or host.endswith("]")):
        return host.strip("[]"), int(port) if _PORT.fullmatch(port) else 0
    return settings.redis_host.strip().strip("[]"), settings.redis_port


def redis_ca_pem(settings: Settings) -> str:
    """The trust roots as PEM, empty where the system's count."""
    return ca_pem(settings.redis_ca_cert)


def redis_rules(settings: Settings) -> list[str]:
    if not settings.uses_redis:
        return []
    if not settings.redis_host:
        return ["REDIS_HOST: required with CACHE_BACKEND=redis"]
    problems: list[str] = []
    host, port = redis_place(settings)
    if not _HOST.fullmatch(host):
        problems.append("REDIS_HOST: must be a host name or an address, host:port at most")
    elif not 0 < port < 65536:
        problems.append("REDIS_HOST: its port must be between 1 and 65535")
    if settings.redis_ca_cert:
        if not settings.redis_tls:
            problems.append("REDIS_CA_CERT: has no effect without REDIS_TLS=true")
        problems += ca_rules("REDIS_CA_CERT", settings.redis_ca_cert)
    return problems
