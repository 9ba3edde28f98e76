"""Spec configuration 2.2 (composition) and 17.3 (the rows of MongoDB)."""

from typing import Any

import pytest

from fetcher.settings.mongo_address import AddressInvalid, compose_uri, uses_tls


@pytest.mark.parametrize(
    ("parts", "uri"),
    [
        ({"host": "h1"}, "mongodb://h1"),
        ({"host": "h1", "port": 5709}, "mongodb://h1:5709"),
        ({"scheme": "mongodb+srv", "host": "c1.example"}, "mongodb+srv://c1.example"),
        (
            {"host": "h1", "port": 1, "user": "kim", "password": "a b/c@d:e%"},
            "mongodb://kim:a%20b%2Fc%40d%3Ae%25@h1:1",
        ),
        ({"host": "h1", "user": "kim"}, "mongodb://kim:@h1"),
        ({"host": "h1", "parameters": "tls=true&w=1"}, "mongodb://h1/?tls=true&w=1"),
    ],
)
def test_an_address_is_composed_as_the_manager_does(parts: dict[str, Any], uri: str) -> None:
    assert compose_uri(**{"scheme": "mongodb", **parts}) == uri


@pytest.mark.parametrize(
    ("uri", "tls"),
    [
        ("mongodb+srv://c1.example/db", True),
        ("MONGODB+SRV://c1.example/db", True),
        ("mongodb+srv://c1.example/db?tls=false", False),
        ("mongodb+srv://c1.example/db?ssl=false", False),
        ("mongodb+srv://c1.example/db?tls=FALSE", False),
        ("mongodb+srv://c1.example/db?tls=0", False),
        ("mongodb+srv://c1.example/db?ssl=0", False),
        ("mongodb+srv://c1.example/db?tls=", True),
        ("mongodb+srv://c1.example/db?tls=true", True),
        ("mongodb://h1/db?tls=true", True),
        ("mongodb://h1/db?ssl=true", True),
        ("mongodb://h1/db?tls=TRUE", True),
        ("mongodb://h1/db?ssl=1", True),
        ("mongodb://h1/db", False),
        ("mongodb://h1/db?tls=false", False),
        ("mongodb://h1/db?tlsCACert=/x.pem", False),
        ("mongodb://h1/db?tls%3Dtrue", False),
        ("mongodb://h1/db?tls=false&hint=tls%3Dtrue", False),
        ("mongodb://h1/db?tls=true&ssl=false", False),
        ("mongodb://h1/db?tls=true&tls=false", True),
        ("mongodb://h1/?TLS=true", True),
        ("", False),
    ],
)
def test_tls_is_detected(uri: str, tls: bool) -> None:
    assert uses_tls(uri) is tls


def test_what_is_no_address_is_an_error_that_names_the_kind() -> None:
    with pytest.raises(AddressInvalid, match=r"^readyz: parse mongodb connection string$"):
        uses_tls("://nothing")
