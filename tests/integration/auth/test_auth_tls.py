"""The authorization service's certificate is verified: nobody else is told a token."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp.connector
import pytest
import trio

from fetcher.adapters.http_client import open_http
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from tests.servers.certificates import Authority, Identity

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhealthy"


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


@asynccontextmanager
async def https(identity: Identity, folder: Path) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server of one answer; its port, and what it was told."""
    (folder / "server.pem").write_text(identity.cert + identity.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")
    told: list[bytes] = []

    async def serve(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        try:
            told.append(bytes(await stream.receive_some(65536)))
            await stream.send_all(ANSWER)
        except trio.BrokenResourceError:
            return

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_ssl_over_tcp, serve, 0, context)
        yield listeners[0].transport_listener.socket.getsockname()[1], told
        nursery.cancel_scope.cancel()


async def health(port: int) -> bytes:
    async with open_http(max_answer_bytes=1024) as http:
        answer = await http.call("GET", f"https://127.0.0.1:{port}/health", deadline_seconds=10)
        return answer.body


def trust(monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    """aiohttp makes its context of the system's authorities when it is imported."""
    context = ssl.create_default_context(cadata=authority.ca)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", context)


async def test_certificate_of_a_known_authority_is_trusted(
    room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority()
    trust(monkeypatch, authority)
    async with https(authority.certificate("127.0.0.1"), tmp_path) as (port, told):
        assert await health(port) == b"healthy"
    assert len(told) == 1


@pytest.mark.parametrize("case", ["unknown authority", "another host", "expired"])
async def test_any_other_certificate_is_refused_before_anything_is_told(
    room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str
) -> None:
    authority = Authority()
    if case != "unknown authority":
        trust(monkeypatch, authority)
    name = "auth.acme.test" if case == "another host" else "127.0.0.1"
    identity = authority.certificate(name, expired=case == "expired")
    async with https(identity, tmp_path) as (port, told):
        with pytest.raises(PortUnavailable, match="its certificate is not trusted"):
            await health(port)
    assert told == []
