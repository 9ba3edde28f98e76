"""A connected socket for drivers that take one."""

import socket

import pytest

from fetcher.datasources import dialing
from fetcher.datasources.addresses import is_peer
from fetcher.datasources.dialing import dial
from fetcher_engine import SourceFailure, Stage


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


async def test_socket_is_connected_blocking_and_watched(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with listener, await dial(["127.0.0.1"], port) as dialled:
        assert dialled.getpeername() == ("127.0.0.1", port)
        assert dialled.getblocking()
        assert dialled.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert dialled.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        assert dialled.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


async def test_next_address_is_tried_when_one_refuses(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with listener, await dial(["127.0.0.2", "127.0.0.1"], port) as dialled:
        assert dialled.getpeername()[0] == "127.0.0.1"


async def test_closed_port_is_refused(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(SourceFailure) as caught:
        await dial(["127.0.0.1"], port)
    assert (caught.value.stage, caught.value.reason) == (Stage.TCP, "refused")


async def test_without_an_address_nothing_is_reachable() -> None:
    with pytest.raises(SourceFailure) as caught:
        await dial([], 5432)
    assert (caught.value.stage, caught.value.reason) == (Stage.TCP, "unreachable")


async def test_peer_that_is_not_the_judged_address_is_left(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialing, "is_peer", lambda _, address: address == "8.8.8.8")
    with listener, pytest.raises(SourceFailure) as caught:
        await dial(["127.0.0.1"], listener.getsockname()[1])
    assert (caught.value.stage, caught.value.reason) == (Stage.TCP, "host_refused")


async def test_peers_are_compared_as_addresses(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with listener, await dial(["127.0.0.1"], port) as dialled:
        assert is_peer(dialled, "127.0.0.1")
        assert not is_peer(dialled, "127.0.0.2")


async def test_zone_of_an_address_does_not_count() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listening:
        port = listening.getsockname()[1]
        with await dial(["::1"], port) as dialled:
            assert is_peer(dialled, "::1%lo")
            assert is_peer(dialled, "0:0:0:0:0:0:0:1")
