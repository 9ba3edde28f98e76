"""What the driver takes from files only: trust roots, and a certificate with its key."""

import ssl
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from fetcher.domain.tenants import TenantNotConfigured

CLEANING_SECONDS: Final = 5.0

_NO_PLACE: Final = "there is no temporary folder for its certificates"


@asynccontextmanager
async def tls_files(ca_pem: str, identity_pem: str) -> AsyncGenerator[dict[str, str], None]:
    """The driver's options, good while the context is open; none without texts.

    The files are ours alone, and in memory where there is some. Raise TenantNotConfigured where
    they cannot be written, or where a certificate has no key, another's, or one with a password.
    """
    pems = {"tlsCAFile": ca_pem, "tlsCertificateKeyFile": identity_pem}
    given = {option: pem for option, pem in pems.items() if pem}
    if not given:
        yield {}
        return
    try:
        folder = await trio.to_thread.run_sync(_folder_with, given)
    except OSError:
        folder = None
    if folder is None:
        raise TenantNotConfigured(_NO_PLACE)
    try:
        paths = {option: str(Path(folder.name) / option) for option in given}
        if identity_pem:
            await trio.to_thread.run_sync(_check_identity, paths["tlsCertificateKeyFile"])
        yield paths
    finally:
        with trio.move_on_after(CLEANING_SECONDS, shield=True):
            await trio.to_thread.run_sync(folder.cleanup)


def _folder_with(pems: dict[str, str]) -> "tempfile.TemporaryDirectory[str]":
    in_memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it, mode 0700
    folder = tempfile.TemporaryDirectory(
        prefix="fetcher-mongo-",
        dir=in_memory if in_memory.is_dir() else None,
        ignore_cleanup_errors=True,
    )
    try:
        for option, pem in pems.items():
            path = Path(folder.name) / option
            path.touch(mode=0o600)
            path.write_text(pem, encoding="ascii")
    except OSError:
        folder.cleanup()
        raise
    return folder


def _check_identity(path: str) -> None:
    """Before the driver does: OpenSSL would ask for a key's password on the terminal."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path, password=_no_password)
    except (OSError, ValueError):
        pass
    else:
        return
    raise TenantNotConfigured("its certificate and its key do not belong together")


def _no_password() -> str:
    raise ValueError("a key with a password")
