"""A connect that fails says where, how far it came, and whether TLS may be the cause."""

import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
from aiormq.exceptions import ProbableAuthenticationError

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connect_failures import connect_failure
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable

SECRET = "canary-secret"
ALERT = b"\x15\x03\x01\x00\x02\x02\x46"
"""What a server with TLS says to whoever does not begin it: protocol_version, fatal."""


def an_address(scheme: str = "amqp", port: int = 5672) -> BrokerAddress:
    return BrokerAddress(scheme=scheme, host="127.0.0.1", port=port, user="u", password=SECRET)


async def failure_of(scheme: str, handler: Callable[[trio.SocketStream], Awaitable[None]]) -> str:
    """What is told of a broker that answers so."""
    async with open_asyncio(pytest.fail), trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, handler, 0, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        port = listener.socket.getsockname()[1]
        with pytest.raises(PortUnavailable) as caught:
            await BrokerConnection(an_address(scheme, port), name="test").check()
        nursery.cancel_scope.cancel()
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
    return str(caught.value).replace(str(port), "PORT")


async def a_plain_broker(stream: trio.SocketStream) -> None:
    """It takes a handshake for another protocol and says which it has."""
    await stream.receive_some()
    await stream.send_all(b"AMQP\x00\x00\x09\x01")
    await stream.aclose()


async def a_broker_with_tls(stream: trio.SocketStream) -> None:
    await stream.receive_some()
    await stream.send_all(ALERT)
    await stream.aclose()


async def test_tls_to_a_plain_port_is_named() -> None:
    assert await failure_of("amqps", a_plain_broker) == (
        "the connection to the broker failed: amqps://127.0.0.1:PORT: tls: TLS handshake failed"
        " (is it a plain port?)"
    )


async def test_plain_text_to_a_port_with_tls_is_named() -> None:
    assert await failure_of("amqp", a_broker_with_tls) == (
        "the connection to the broker failed: amqp://127.0.0.1:PORT: session: what listens there"
        " does not speak AMQP (is it a TLS port?)"
    )


@pytest.mark.parametrize(
    ("scheme", "error", "is_connected", "told"),
    [
        ("amqp", ConnectionRefusedError(SECRET), False, "tcp: refused: nothing listens there"),
        ("amqps", socket.gaierror(SECRET), False, "dns: the host's name does not resolve"),
        ("amqps", ssl.SSLCertVerificationError(SECRET), False, "tls: the broker's certificate"),
        ("amqp", ProbableAuthenticationError(SECRET), True, "auth: the broker refused"),
        ("amqps", trio.TooSlowError(), False, "tcp or tls: timeout: no TLS handshake (is it a"),
        ("amqp", trio.TooSlowError(), False, "tcp: timeout"),
        ("amqp", trio.TooSlowError(), True, "session: timeout: no answer of AMQP (is it a TLS"),
        ("amqps", OSError(SECRET), False, "tcp or tls: no connection (is it a plain port?)"),
    ],
)
def test_each_failure_has_its_stage(
    scheme: str, error: Exception, is_connected: bool, told: str
) -> None:
    text = str(connect_failure(error, an_address(scheme), is_connected=is_connected))
    assert text.startswith(
        f"the connection to the broker failed: {scheme}://127.0.0.1:5672: {told}"
    )
    assert SECRET not in text
