"""``SWAGGER_*``: what the API document says of itself (spec rest-api 1.2)."""

import pytest

from fetcher.api.services import DocumentFacts
from fetcher.bootstrap.document import document_facts
from fetcher.settings import Settings


def test_blank_values_null_and_nil_leave_the_defaults() -> None:
    settings = Settings(swagger_title="null", swagger_version=" nil ", swagger_description="  ")
    assert document_facts(settings) == DocumentFacts(
        title="Fetcher Manager API", description="", version="1.0.0", server="/"
    )


def test_texts_are_taken() -> None:
    settings = Settings(swagger_title="Data", swagger_version="2", swagger_description="Ours")
    assert document_facts(settings) == DocumentFacts(title="Data", version="2", description="Ours")


@pytest.mark.parametrize(
    ("host", "base_path", "schemes", "server"),
    [
        ("api.acme.test:8443", "/data", "https", "https://api.acme.test:8443/data"),
        ("api.acme.test:80", "", "", "http://api.acme.test:80/"),
        (":4006", "data", "https", "/data"),
        ("api.acme.test", "", "https", "/"),
    ],
)
def test_a_host_counts_with_its_port_only(
    host: str, base_path: str, schemes: str, server: str
) -> None:
    settings = Settings(swagger_host=host, swagger_base_path=base_path, swagger_schemes=schemes)
    assert document_facts(settings).server == server
