"""Certificates and keys of connections: PEM texts, which never become files with a name."""

import base64
import binascii
import os
import ssl


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
