"""TLS as libpq wants it: a mode and paths (spec datasources, section 3).

Certificates come as text and lie in files, readable by us alone, only while a connection is made.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fetcher.datasources.pem import pem_bytes, private_folder
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure, Stage

_NOWHERE: Final = "/dev/null/none"
"""A path that cannot exist: libpq then uses no file, neither ours nor the home folder's."""

_VERIFYING: Final = frozenset({"verify-ca", "verify-full"})
_CHECKING: Final = _VERIFYING | {"require"}
_MODES: Final = frozenset({"disable", "allow", "prefer", "require", *_VERIFYING})

_SYSTEM_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
"""Debian, Red Hat, Alpine and others; the OpenSSL inside psycopg's wheel knows none of them."""


@contextmanager
def tls_keywords(tls: TlsSettings | None) -> Iterator[dict[str, str]]:
    """libpq's keywords, with files that are gone when the context ends.

    Without CA, ``require`` checks nothing and the verifying modes use the system's trust. ``allow``
    and ``prefer`` check nothing at all. Raise SourceFailure ``tls`` for settings that cannot be
    used.
    """
    keywords = {
        "sslmode": tls.mode if tls is not None and tls.mode else "disable",
        "sslrootcert": _NOWHERE,
        "sslcert": _NOWHERE,
        "sslkey": _NOWHERE,
        "sslcrl": _NOWHERE,
        "ssl_min_protocol_version": "TLSv1.2",
    }
    if keywords["sslmode"] not in _MODES:
        raise SourceFailure(Stage.TLS, "tls")
    if tls is None or keywords["sslmode"] == "disable":
        yield keywords
        return
    if keywords["sslmode"] in _VERIFYING and not tls.ca:
        keywords["sslrootcert"] = _system_bundle()
    with private_folder() as folder:
        for keyword, text in (
            # libpq checks in every mode that has a CA, and ``prefer`` then goes on without TLS
            ("sslrootcert", tls.ca if keywords["sslmode"] in _CHECKING else ""),
            ("sslcert", tls.cert),
            ("sslkey", tls.key),
        ):
            if text:
                path = folder / keyword
                path.touch(mode=0o600)
                path.write_bytes(pem_bytes(text))
                keywords[keyword] = str(path)
        yield keywords


def _system_bundle() -> str:
    candidates = (ssl.get_default_verify_paths().cafile, *_SYSTEM_BUNDLES)
    for path in candidates:
        if path and Path(path).is_file():
            return path
    raise SourceFailure(Stage.TLS, "tls")
