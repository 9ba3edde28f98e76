"""TLS to the broker: one context for all connections with the same trust roots."""

import ssl
from weakref import WeakValueDictionary

import trio

_CONTEXTS: WeakValueDictionary[str, ssl.SSLContext] = WeakValueDictionary()
"""By trust roots, for as long as a connection uses one: the system's roots, which are what an empty
text stands for, take 20 ms to read and more memory than all else of a connection."""


async def tls_context(ca_pem: str) -> ssl.SSLContext:
    """TLS 1.2 or later with the host's name checked; with ``ca_pem`` these are the only roots.

    Raise ssl.SSLError for what holds no certificates.
    """
    known = _CONTEXTS.get(ca_pem)
    if known is not None:
        return known
    made = await trio.to_thread.run_sync(_made, ca_pem)
    return _CONTEXTS.setdefault(ca_pem, made)


def _made(ca_pem: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_pem or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
