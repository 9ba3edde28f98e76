"""Redaction: spec worker-and-events 8.5 and every row of 12.5, then our own rules."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.domain.redaction import redact

TABLE_12_5 = [
    (
        "connect failed: postgres://app:pw@db1.int:5432/x refused",
        "connect failed: [redacted] refused",
    ),
    (
        "sources: mongodb://u:p@h1 and amqp://u:p@h2",
        "sources: [redacted] and [redacted]",
    ),
    (
        "dial tcp 10.2.3.4:5432: connect: connection refused",
        "dial tcp [redacted] connect: connection refused",
    ),
    ("dial udp 10.9.9.9:53: timeout", "dial udp [redacted] timeout"),
    (
        "lookup mongo.int on 10.0.0.2:53: no such host",
        "lookup [redacted] on [redacted]: no such host",
    ),
    (
        "read tcp 10.1.1.1:4000->10.1.1.2:5432: i/o timeout",
        "read tcp [redacted] i/o timeout",
    ),
    (
        "server selection error: { Addr: mongo-a.int:27017, Type: Unknown }",
        "server selection error: { Addr: [redacted] Type: Unknown }",
    ),
    ("host 192.168.0.7:3306 down", "host [redacted] down"),
    ("version 1.2.3 ok", "version 1.2.3 ok"),
    ("version 1.2.3.4 ok", "version [redacted] ok"),
    ('relation "orders" does not exist', 'relation "orders" does not exist'),
    ("db-host.internal unreachable", "db-host.internal unreachable"),
    ("IPv6 [2001:db8::1]:5432 refused", "IPv6 [2001:db8::1]:5432 refused"),
    ("a [redacted] b", "a [redacted] b"),
]


@pytest.mark.parametrize(("text", "expected"), TABLE_12_5)
def test_the_reference_rules_hold(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'connection to server at "db.int" (10.0.0.5), port 5432 failed',
            "connection to server at [redacted] ([redacted]), port 5432 failed",
        ),
        (
            "Can't connect to MySQL server on 'db.int' (111)",
            "Can't connect to MySQL server on [redacted] (111)",
        ),
        ("dsn user=u password=s3cret host=h", "dsn user=u password=[redacted] host=h"),
        ("PASSWORD = 'a b\\'c' x", "PASSWORD = [redacted] x"),
        ('pwd="a b" x', "pwd=[redacted] x"),
        ("db_password=x;token=y", "db_password=[redacted]"),
        (
            "aws_secret_access_key=AK api-key=1",
            "aws_secret_access_key=[redacted] api-key=[redacted]",
        ),
        ("password='never closed", "password=[redacted]"),
        ('server at "never closed', "server at [redacted]"),
        ("password authentication failed", "password authentication failed"),
        ("the server at work", "the server at work"),
    ],
)
def test_secrets_and_hosts_of_todays_drivers_are_redacted(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


FRAGMENTS = [
    *("lookup", "dial tcp", "read tcp", "Addr:", "://", "1.2.3.4", ":5432", "password="),
    *("server at", "[redacted]", "é", "x", "a", " ", "\n", '"', "'", "\\", "=", ":"),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14))
def test_redacting_twice_changes_nothing(parts: list[str]) -> None:
    once = redact("".join(parts))
    assert redact(once) == once


def test_a_message_has_at_most_2000_characters() -> None:
    assert redact("é" * 5000) == "é" * 2000
    assert len(redact("1.2.3.4 " * 5000)) == 2000


@pytest.mark.parametrize(
    "unit",
    ["a", "1.", "1", "password", "password-", " ", "lookup ", "Addr: ", "'", 'server at "', "\\"],
)
def test_hostile_texts_cost_little(unit: str) -> None:
    started = time.process_time()
    redact(unit * 1_000_000)
    assert time.process_time() - started < 1
