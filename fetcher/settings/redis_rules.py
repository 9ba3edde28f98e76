"""Where Redis is, and what is wrong with that (spec configuration 2.6)."""

import base64
import binascii
import re
import ssl
from typing import Final

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
    """The trust roots as PEM, empty where there are none; raise ValueError for what is no PEM."""
    if not settings.redis_ca_cert:
        return ""
    try:
        pem = base64.b64decode(settings.redis_ca_cert.strip(), validate=True).decode("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (binascii.Error, UnicodeError, ssl.SSLError, ValueError):
        pem = ""
    if not pem:
        raise ValueError("no certificates")
    return pem


def redis_rules(settings: Settings) -> list[str]:
    if not settings.redis_host:
        return []
    problems: list[str] = []
    host, port = redis_place(settings)
    if not _HOST.fullmatch(host):
        problems.append("REDIS_HOST: must be a host name or an address, host:port at most")
    elif not 0 < port < 65536:
        problems.append("REDIS_HOST: its port must be between 1 and 65535")
    if settings.redis_ca_cert:
        if not settings.redis_tls:
            problems.append("REDIS_CA_CERT: has no effect without REDIS_TLS=true")
        try:
            redis_ca_pem(settings)
        except ValueError:
            problems.append("REDIS_CA_CERT: must be the base64 of certificates in PEM")
    return problems
