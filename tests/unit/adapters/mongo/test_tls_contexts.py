"""Clients with the same trust roots share a TLS context, and nothing else of each other's."""

import gc
import inspect
import ssl
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient, MongoClient, client_options, ssl_support

from fetcher.adapters.mongo import tls_contexts
from fetcher.adapters.mongo.tls_contexts import SharedContext, share_contexts
from tests.servers.certificates import Authority


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test's end, in spite of what it promises to a process."""
    monkeypatch.setattr(client_options, "get_ssl_context", ssl_support.get_ssl_context)
    share_contexts()


def context_of(client: Any) -> ssl.SSLContext:
    context = client.options.pool_options._ssl_context
    assert isinstance(context, ssl.SSLContext)
    return context


def a_client(**options: Any) -> Any:
    return AsyncMongoClient("mongodb://h1", tls=True, **options)


def test_the_driver_asks_for_contexts_by_the_name_that_is_replaced() -> None:
    assert "get_ssl_context" in client_options._parse_ssl_options.__code__.co_names
    asked = inspect.signature(ssl_support.get_ssl_context).parameters
    assert list(asked) == [
        "certfile",
        "passphrase",
        "ca_certs",
        "crlfile",
        "allow_invalid_certificates",
        "allow_invalid_hostnames",
        "disable_ocsp_endpoint_check",
        "is_sync",
    ]


def test_clients_with_the_systems_roots_share_a_context_that_verifies() -> None:
    first, second = a_client(), a_client()
    context = context_of(first)
    assert context is context_of(second)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.get_ca_certs()


def test_the_same_roots_in_other_files_are_the_same(tmp_path: Path) -> None:
    ca, other = Authority().ca, Authority().ca
    for name, text in {"a": f"# Prüfstelle\n{ca}", "b": f"# Prüfstelle\n{ca}", "c": other}.items():
        (tmp_path / name).write_text(text)
    a, b, c = (a_client(tlsCAFile=str(tmp_path / name)) for name in "abc")
    assert context_of(a) is context_of(b)
    assert context_of(a) is not context_of(c)
    assert len(context_of(a).get_ca_certs()) == 1


def test_what_checks_less_or_shows_a_certificate_has_its_own(tmp_path: Path) -> None:
    identity = Authority().certificate("u7", client=True)
    (tmp_path / "both").write_text(f"{identity.cert}\n{identity.key}")
    shared = context_of(a_client())
    insecure = context_of(a_client(tlsInsecure=True))
    assert insecure.verify_mode is ssl.CERT_NONE
    shows = [a_client(tlsCertificateKeyFile=str(tmp_path / "both")) for _ in range(2)]
    contexts = [context_of(client) for client in shows]
    assert contexts[0] is not contexts[1]
    assert shared not in (insecure, *contexts)
    assert not any(isinstance(each, SharedContext) for each in (insecure, *contexts))


def test_a_blocking_client_has_its_own() -> None:
    with MongoClient[dict[str, Any]]("mongodb://h1", tls=True, connect=False) as client:
        assert not isinstance(client.options.pool_options._ssl_context, SharedContext)


def test_a_session_that_is_left_on_it_is_found_by_nobody() -> None:
    context: Any = context_of(a_client())

    class Resuming(ssl.SSLObject): ...

    context.sslobject_class = Resuming
    assert context.sslobject_class is ssl.SSLObject
    made = context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="h1")
    assert type(made) is ssl.SSLObject


def test_none_outlives_its_clients(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text(Authority().ca)
    client = a_client(tlsCAFile=str(tmp_path / "ca"))
    before = len(tls_contexts._CONTEXTS)
    del client
    gc.collect()
    assert len(tls_contexts._CONTEXTS) == before - 1
