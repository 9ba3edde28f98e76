"""TLS as pymongo wants it: options with paths (spec datasources, section 3).

Certificates come as text and lie in files, readable by us alone, only while a client is made.
"""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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
    with _private_folder() as folder:
        if tls.ca and mode in _VERIFYING:
            options["tlsCAFile"] = _written(folder / "ca.pem", _pem(tls.ca))
        if tls.cert:
            both = _pem(tls.cert) + b"\n" + _pem(tls.key)
            options["tlsCertificateKeyFile"] = _written(folder / "client.pem", both)
        yield options


def named_socket(name: str) -> type[ssl.SSLSocket]:
    """A socket class that proves ``name`` where the address that was judged is dialled.

    pymongo takes what it dials for the name. ``_create`` is what ``SSLContext.wrap_socket`` calls.
    """

    class NamedSocket(ssl.SSLSocket):
        @classmethod
        def _create(cls, *arguments: Any, **keywords: Any) -> ssl.SSLSocket:
            keywords["server_hostname"] = name
            created: ssl.SSLSocket = super()._create(*arguments, **keywords)  # type: ignore[misc]
            return created

    return NamedSocket


@contextmanager
def _private_folder() -> Iterator[Path]:
    in_memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it, mode 0700
    parent = str(in_memory) if in_memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fetcher-tls-", dir=parent) as folder:
        yield Path(folder)


def _written(path: Path, data: bytes) -> str:
    path.touch(mode=0o600)
    path.write_bytes(data)
    return str(path)


def _pem(text: str) -> bytes:
    """PEM text as it is, or the base64 of one."""
    if "-----BEGIN " in text:
        return text.encode()
    try:
        decoded = base64.b64decode(text, validate=True)
    except binascii.Error:
        decoded = b""
    if b"-----BEGIN " not in decoded:
        raise SourceFailure(Stage.TLS, "tls")
    return decoded
