"""TLS as the driver wants it: a context, or none (spec datasources, section 3).

The driver turns a context's check of the host name off and would match the address it dials. Ours
checks the name that the connection's owner wrote, whatever address that led to.
"""

import ssl
from collections.abc import Callable
from typing import Any, Final

from fetcher.datasources.pem import load_identity, pem_text
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure, Stage

_PLAIN: Final = frozenset({"", "disable", "false"})
_VERIFYING: Final = frozenset({"true", "enable", "verify"})
_UNVERIFIED: Final = "skip-verify"


class NamedContext(ssl.SSLContext):
    """A context for one expected host name, None to verify nothing."""

    expected_name: str | None = None
    on_wrapped: Callable[[], object] = staticmethod(lambda: None)
    """Called when TLS is up."""

    def wrap_socket(self, sock: Any, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """What the driver calls; what it says about names does not count."""
        del args
        kwargs["server_hostname"] = self.expected_name
        self.check_hostname = self.expected_name is not None
        wrapped = super().wrap_socket(sock, **kwargs)
        self.on_wrapped()
        return wrapped


def tls_context(tls: TlsSettings | None, host: str) -> NamedContext | None:
    """None: a plain connection. Raise SourceFailure ``tls`` for settings that cannot be used."""
    mode = tls.mode if tls is not None else ""
    if tls is None or mode in _PLAIN:
        return None
    if mode != _UNVERIFIED and mode not in _VERIFYING:
        raise SourceFailure(Stage.TLS, "tls")
    context = NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if mode == _UNVERIFIED:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context.expected_name = host
            if tls.ca:
                context.load_verify_locations(cadata=pem_text(tls.ca))
            else:
                context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if tls.cert or tls.key:
            load_identity(context, cert=tls.cert, key=tls.key)
    except (OSError, ValueError):
        unusable = True
    else:
        unusable = False
    if unusable:
        raise SourceFailure(Stage.TLS, "tls")
    return context
