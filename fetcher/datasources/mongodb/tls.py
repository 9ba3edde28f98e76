"""TLS as pymongo wants it: options with paths (spec datasources, section 3).

Certificates come as text and lie in files, readable by us alone, only while a client is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fetcher.datasources.pem import pem_bytes, private_folder
from fetcher.domain.connections import TlsSettings
from fetcher_engine import SourceFailure, Stage

_PLAIN: Final = frozenset({"", "disable", "false"})
_VERIFYING: Final = frozenset({"true", "enable"})
_INSECURE: Final = "insecure"


@contextmanager
def tls_options(tls: TlsSettings | None) -> Iterator[dict[str, Any]]:
    """pymongo's options, with files that are gone when the context ends.

    Without CA the system's trust decides; ``insecure`` checks nothing. Raise SourceFailure ``tls``
    for settings that cannot be used.
    """
    mode = tls.mode if tls is not None else ""
    if tls is None or mode in _PLAIN:
        yield {}
        return
    if (mode != _INSECURE and mode not in _VERIFYING) or bool(tls.cert) != bool(tls.key):
        raise SourceFailure(Stage.TLS, "tls")
    options: dict[str, Any] = {"tls": True}
    if mode == _INSECURE:
        options["tlsInsecure"] = True
    with private_folder() as folder:
        if tls.ca and mode in _VERIFYING:
            options["tlsCAFile"] = _written(folder / "ca.pem", pem_bytes(tls.ca))
        if tls.cert:
            both = pem_bytes(tls.cert) + b"\n" + pem_bytes(tls.key)
            options["tlsCertificateKeyFile"] = _written(folder / "client.pem", both)
        yield options


def _written(path: Path, data: bytes) -> str:
    path.touch(mode=0o600)
    path.write_bytes(data)
    return str(path)
