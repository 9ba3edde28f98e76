"""Why no server was found: TLS against a plain port, the reverse, and a closed port."""

import pytest
from pymongo.errors import ServerSelectionTimeoutError

from fetcher.adapters.mongo.failures import translate


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "SSL handshake failed: canary:27017: [SSL: WRONG_VERSION_NUMBER] wrong version number",
            ": tls: TLS handshake failed (is it a plain port?)",
        ),
        (
            "SSL handshake failed: canary:27017: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed",
            ": tls: a server's certificate was not accepted",
        ),
        (
            "canary:27017: connection closed (configured timeouts: connectTimeoutMS: 20000.0ms)",
            ": session: a server closed the connection (is it a TLS port?)",
        ),
        (
            "canary:1: [Errno 111] Connect call failed ('127.0.0.1', 1)",
            ": tcp: refused: nothing listens there",
        ),
        ("canary: something else", ""),
    ],
)
def test_what_keeps_the_driver_from_a_server_is_told_in_fixed_words(text: str, told: str) -> None:
    failure = translate(ServerSelectionTimeoutError(f"{text}, Timeout: 0.3s"))
    assert str(failure) == f"no record store server was found in time{told}"
