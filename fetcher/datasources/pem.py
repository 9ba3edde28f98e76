"""Certificates and keys of connections: PEM texts, in files for as long as a driver reads them."""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fetcher_engine import SourceFailure, Stage


def pem_text(text: str) -> str:
    """PEM as it is, or the base64 of one; raise ValueError for anything else."""
    if "-----BEGIN " in text:
        return text
    try:
        decoded = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        decoded = ""
    if "-----BEGIN " in decoded:
        return decoded
    raise ValueError("no PEM")


def pem_bytes(text: str) -> bytes:
    """As :func:`pem_text`; raise SourceFailure ``tls``."""
    try:
        return pem_text(text).encode()
    except ValueError:
        pass
    raise SourceFailure(Stage.TLS, "tls")


@contextmanager
def private_folder() -> Iterator[Path]:
    """For drivers that take nothing but paths: in memory where there is some, gone at the end."""
    in_memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it, mode 0700
    parent = str(in_memory) if in_memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fetcher-tls-", dir=parent) as folder:
        yield Path(folder)


def load_identity(context: ssl.SSLContext, *, cert: str, key: str) -> None:
    """Have a context show a client certificate.

    OpenSSL's loader takes a path only: that of memory without a name, which is gone afterwards.
    Raise ValueError or OSError (an SSLError is one) for what is none, or a key with a password.
    """
    descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        with open(descriptor, "wb", closefd=False) as memory:
            memory.write(f"{pem_text(cert)}\n{pem_text(key)}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_no_password)
    finally:
        os.close(descriptor)


def _no_password() -> str:
    # without one OpenSSL would ask for it on the terminal
    raise ValueError("a key with a password")
