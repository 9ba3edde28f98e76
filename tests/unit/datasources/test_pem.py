"""Certificates and keys of connections."""

import base64
import ssl
from pathlib import Path

import pytest

from fetcher.datasources.pem import load_identity, pem_text
from tests.servers.certificates import authority

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def test_pem_is_taken_as_it_is_or_from_base64() -> None:
    assert pem_text(PEM) == PEM
    assert pem_text(base64.b64encode(PEM.encode()).decode()) == PEM


@pytest.mark.parametrize("text", ["", "x", "AAAA", base64.b64encode(b"\xff\xfe").decode()])
def test_what_is_no_pem(text: str) -> None:
    with pytest.raises(ValueError, match="no PEM"):
        pem_text(text)


def test_identity_is_loaded_and_leaves_no_file() -> None:
    certificate = authority().certificate("db.example.net", client=True)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    load_identity(
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), cert=certificate.cert, key=certificate.key
    )
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_key_of_another_certificate_is_refused() -> None:
    ours, other = (authority().certificate("db.example.net", client=True) for _ in range(2))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLError):
        load_identity(context, cert=ours.cert, key=other.key)
