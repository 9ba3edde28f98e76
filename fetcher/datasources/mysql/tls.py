"""TLS as the driver wants it: a context a connection (spec datasources, section 3)."""

import base64
import binascii
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

from fetcher.datasources.mysql.errors import TLS
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure, Stage

PLAINTEXT: Final = "false"
VERIFIED: Final = "true"
UNVERIFIED: Final = "skip-verify"
IF_OFFERED: Final = "preferred"

_MODES: Final = frozenset({PLAINTEXT, VERIFIED, UNVERIFIED, IF_OFFERED})


class WatchedContext(ssl.SSLContext):
    """Tells when its one handshake begins and when it has succeeded."""

    begun: Callable[[], None]
    ended: Callable[[], None]

    def wrap_socket(self, sock: socket.socket, *args: Any, **keywords: Any) -> ssl.SSLSocket:
        self.begun()
        wrapped = super().wrap_socket(sock, *args, **keywords)
        self.ended()
        return wrapped


def mode_of(tls: TlsSettings | None) -> str:
    """Raise SourceFailure ``tls`` for a mode that is none of MySQL's."""
    mode = tls.mode if tls is not None and tls.mode else PLAINTEXT
    if mode not in _MODES:
        raise SourceFailure(Stage.TLS, TLS)
    return mode


def tls_context(tls: TlsSettings | None) -> WatchedContext | None:
    """None for plaintext. Without CA the system's trust decides, where anything is verified.

    Raise SourceFailure ``tls`` for settings that cannot be used. Blocking: reads the system's
    certificates.
    """
    mode = mode_of(tls)
    if tls is None or mode == PLAINTEXT:
        return None
    usable = False
    context = WatchedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if mode == VERIFIED:
            if tls.ca:
                context.load_verify_locations(cadata=_pem(tls.ca))
            else:
                context.load_default_certs()
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert or tls.key:
            _load_identity(context, _pem(tls.cert) + "\n" + _pem(tls.key))
        usable = True
    except (ValueError, OSError):  # an SSLError is an OSError
        pass
    if not usable:
        raise SourceFailure(Stage.TLS, TLS)
    return context


def _load_identity(context: ssl.SSLContext, pem: str) -> None:
    """OpenSSL takes certificate and key from a path only: that of memory without a name."""
    descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, pem.encode())
        # without a password OpenSSL would ask for one on the terminal
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_no_password)
    finally:
        os.close(descriptor)


def _no_password() -> str:
    message = "keys with a password are not supported"
    raise ValueError(message)


def _pem(text: str) -> str:
    """PEM text as it is, or the base64 of one; raise ValueError."""
    if "-----BEGIN " in text:
        return text
    try:
        decoded = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeError):
        decoded = ""
    if "-----BEGIN " not in decoded:
        message = "no PEM"
        raise ValueError(message)
    return decoded
