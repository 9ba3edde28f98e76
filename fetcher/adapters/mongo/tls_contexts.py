"""TLS contexts that the driver's clients share.

The driver makes one for each client. One with the system's trust roots takes 0.8 MB and 37 ms of
the loop; tenants with users of their own have a client each.
"""

import ssl
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

from pymongo import client_options, ssl_support

_drivers_own: Final[Callable[..., Any]] = ssl_support.get_ssl_context


class SharedContext(ssl.SSLContext):
    """Verifies server and host name, TLS 1.2 or later. Sessions are not resumed.

    The driver resumes one by leaving a class with it on the context, where the next client of the
    same context, perhaps of another server, would find it.
    """

    @property
    def sslobject_class(self) -> type[ssl.SSLObject]:
        return ssl.SSLObject

    @sslobject_class.setter
    def sslobject_class(self, _: type[ssl.SSLObject]) -> None: ...


_CONTEXTS: WeakValueDictionary[str, SharedContext] = WeakValueDictionary()
"""By trust roots, for as long as a client uses one, so that renewed roots come into use."""


def share_contexts() -> None:
    """Let clients with the same trust roots, and no certificate of their own, share a context, in
    this process. May be repeated."""
    client_options.get_ssl_context = _context  # type: ignore[attr-defined,assignment] # by name


def _context(
    certfile: str | None,
    passphrase: str | None,
    ca_certs: str | None,
    crlfile: str | None,
    *switches: bool,
) -> Any:
    """As the driver's own, whose last switch is whether the client is a blocking one; the others
    make it check less."""
    if certfile or crlfile or any(switches):
        return _drivers_own(certfile, passphrase, ca_certs, crlfile, *switches)
    # Lines between certificates may be comments in any language.
    roots = Path(ca_certs).read_bytes().decode("ascii", "replace") if ca_certs else ""
    key = sha256(roots.encode()).hexdigest() if roots else ""
    known = _CONTEXTS.get(key)
    if known is None:
        known = _CONTEXTS[key] = _made(roots)
    return known


def _made(roots: str) -> SharedContext:
    context = SharedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if roots:
        context.load_verify_locations(cadata=roots.replace("\ufffd", "?"))
    else:
        context.load_default_certs()
    return context
