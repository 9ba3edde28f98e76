"""How often a connection to a broker that hangs up is tried for one use of it."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
import trio

from fetcher.adapters.amqp import connection as connection_module
from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.broker import open_amqp
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import OutgoingMessage

pytestmark = pytest.mark.integration


class Refusing:
    """A broker that hangs up on whoever comes."""

    def __init__(self, port: int) -> None:
        self.address = BrokerAddress(
            scheme="amqp", host="127.0.0.1", port=port, user="u", password="p"
        )
        self.visits = 0


@pytest.fixture
async def refusing(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Refusing]:
    monkeypatch.setattr(connection_module, "OPEN_BACKOFF_CAP_SECONDS", 0.01)

    async def hang_up(stream: trio.SocketStream) -> None:
        broker.visits += 1
        await stream.aclose()

    async with open_asyncio(lambda _: None), trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, hang_up, 0, host="127.0.0.1"))
        broker = Refusing(listener.socket.getsockname()[1])
        yield broker
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("tries", [1, 3])
async def test_so_often_as_the_connection_says(refusing: Refusing, tries: int) -> None:
    connection = BrokerConnection(refusing.address, name="test", open_tries=tries)
    with pytest.raises(PortUnavailable):
        await connection.check()
    assert refusing.visits == tries


@pytest.mark.parametrize(("idle_seconds", "visits"), [(None, 3), (300.0, 1)])
async def test_a_tenants_is_tried_once_since_hundreds_try_with_it(
    refusing: Refusing, idle_seconds: float | None, visits: int
) -> None:
    message = OutgoingMessage(exchange="", routing_key="work", body=b"{}", headers={})
    async with open_amqp(
        refusing.address,
        work_queue="work",
        consumes=True,
        now=utc_now,
        idle_seconds=idle_seconds,
    ) as broker:
        with pytest.raises(PortUnavailable):
            await broker.publisher.publish(message)
        assert refusing.visits == visits
