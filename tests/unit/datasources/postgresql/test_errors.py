"""What libpq's texts about failed attempts are called; captured from PostgreSQL 15 if not said."""

import pytest

from fetcher.datasources.postgresql.errors import connect_failure
from fetcher_engine import Stage

AT = b'connection to server at "127.0.0.1", port 1 failed: '
NO_CERTIFICATE = AT + b"FATAL:  28000: connection requires a valid client certificate\nLOCATION: \n"
NO_ENCRYPTION = (
    AT + b'FATAL:  28000: no pg_hba.conf entry for host "h", user "u", database "d", no encryption'
    b"\nLOCATION:  ClientAuthentication, auth.c:544\n"
)
SSL_OFF = NO_ENCRYPTION.replace(b"no encryption", b"SSL off")  # version 13 and before
NO_DATABASE = AT + b'FATAL:  3D000: database "d" does not exist\nLOCATION: \n'
UNKNOWN_CA = AT + b"SSL error: tlsv1 alert unknown ca\n"
UNTRUSTED = AT + b"SSL error: certificate verify failed\n"


@pytest.mark.parametrize(
    ("stage", "message", "expected"),
    [
        (Stage.AUTH, NO_ENCRYPTION, "tls: tls_required"),
        (Stage.AUTH, SSL_OFF, "tls: tls_required"),
        (Stage.AUTH, NO_CERTIFICATE, "auth: auth"),
        (Stage.AUTH, NO_CERTIFICATE + NO_ENCRYPTION, "auth: auth"),
        (Stage.AUTH, NO_ENCRYPTION + NO_DATABASE, "auth: database_missing"),
        (Stage.AUTH, UNKNOWN_CA, "tls: tls"),
        (Stage.AUTH, UNKNOWN_CA + NO_ENCRYPTION, "tls: tls"),
        (Stage.TLS, UNTRUSTED, "tls: tls"),
        (Stage.TCP, AT + b"Connection refused\n", "tcp: refused"),
    ],
)
def test_two_attempts_are_told_by_the_one_that_says_most(
    stage: Stage, message: bytes, expected: str
) -> None:
    assert str(connect_failure(stage, message)) == expected
