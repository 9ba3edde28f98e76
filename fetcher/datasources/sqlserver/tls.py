"""How a TLS mode becomes an OpenSSL context (spec datasources, section 3)."""

import ssl
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from fetcher.datasources.pem import pem_text
from fetcher.datasources.targets import Target
from fetcher.domain.tls_modes import TRUSTS_SERVER
from fetcher_engine import SourceFailure, Stage


class Encryption(IntEnum):
    """``ENCRYPTION`` in a PRELOGIN message (MS-TDS 2.2.6.5)."""

    OFF = 0
    """The login alone is encrypted."""
    ON = 1
    NOT_SUPPORTED = 2
    REQUIRED = 3


@dataclass(frozen=True, slots=True)
class TlsPlan:
    """What we ask for, and the context for what comes of it; None where TLS is not wanted."""

    wanted: Encryption
    context: ssl.SSLContext | None


STRICT_UNSUPPORTED: Final = "strict_unsupported"


def tls_plan(target: Target) -> TlsPlan:
    """Raise SourceFailure: a CA that is none, an unknown mode, or ``strict``.

    ``strict`` is TDS 8.0, which the driver does not speak: it is refused rather than weakened.
    """
    mode = target.tls.mode if target.tls is not None else ""
    if mode in ("", "disable"):
        return TlsPlan(Encryption.NOT_SUPPORTED, None)
    if mode == "false":
        return TlsPlan(Encryption.OFF, _unverified())
    if mode == "strict":
        raise SourceFailure(Stage.SESSION, STRICT_UNSUPPORTED)
    if mode != "true":
        raise SourceFailure(Stage.TLS, "tls")
    ca = target.tls.ca if target.tls is not None else ""
    trusts_all = target.metadata.get(TRUSTS_SERVER) in ("true", True)
    if trusts_all and not ca:
        return TlsPlan(Encryption.ON, _unverified())
    return TlsPlan(Encryption.ON, _verified(ca))


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # inside of TDS 7 a handshake ends before the first packet: 1.3 sends tickets after it
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def _unverified() -> ssl.SSLContext:
    context = _context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _verified(ca: str) -> ssl.SSLContext:
    """Chain and host name: by the given CA alone, else by the system's trust."""
    context = _context()
    if not ca:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=pem_text(ca))
    except (ssl.SSLError, ValueError):
        pass
    else:
        return context
    raise SourceFailure(Stage.TLS, "tls")
