"""Where the server listens."""

import socket
import struct
import sys

import pytest
import trio

from fetcher.api.server import BoundAddress, parse_address, serve_http
from fetcher.domain.errors import StartRefused
from tests.unit.api.harness import an_api


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":4006", "", 4006),
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("[::1]:80", "::1", 80),
        ("host.test:0", "host.test", 0),
    ],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert parse_address(text) == BoundAddress(host, port)


@pytest.mark.parametrize("text", ["", "4006", "host", "host:", "host:70000", "::1:80", "a b:80"])
def test_what_is_no_address_refuses_the_start(text: str) -> None:
    with pytest.raises(StartRefused, match="no listen address"):
        parse_address(text)


async def test_address_in_use_refuses_the_start_and_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StartRefused) as refused:
            await serve_http(an_api().app, address=address, stop=trio.Event())
    assert refused.value.problems == (f"cannot listen on {address}: address already in use",)


async def test_unknown_host_refuses_the_start() -> None:
    with pytest.raises(StartRefused, match=r"cannot listen on 192\.0\.2\.1:0"):
        await serve_http(an_api().app, address="192.0.2.1:0", stop=trio.Event())


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the length of the queue")
async def test_few_connections_wait_ahead_of_being_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[trio.SocketListener] = []
    listen, stop = trio.open_tcp_listeners, trio.Event()

    async def watched(
        port: int, *, host: str | None, backlog: int | None = None
    ) -> list[trio.SocketListener]:
        listeners.extend(await listen(port, host=host, backlog=backlog))
        return listeners

    monkeypatch.setattr(trio, "open_tcp_listeners", watched)

    def look(_: object) -> None:
        (listener,) = listeners
        told = listener.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        # tcp(7): of a listener tcpi_sacked is the length that its queue may have.
        assert struct.unpack_from("I", told, 28)[0] <= 512
        stop.set()

    await serve_http(an_api().app, address="127.0.0.1:0", stop=stop, on_listening=look)
    assert stop.is_set()
