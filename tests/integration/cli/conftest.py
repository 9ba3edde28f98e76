"""A command's settings for the shared broker; `fetcher dlq`, on a queue of the test's own."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.bridge import open_asyncio
from fetcher.cli import main
from fetcher.ports import OutgoingMessage
from tests.contract.dead_letters.conftest import declare_dead_letters, publish_all
from tests.contract.queue.work_queues import broker_address
from tests.integration.cli.dlq import KEY


@pytest.fixture
def broker_settings(monkeypatch: pytest.MonkeyPatch, amqp_url: str) -> None:
    address = broker_address(amqp_url)
    for name, value in {
        "RABBITMQ_HOST": address.host,
        "RABBITMQ_PORT_AMQP": str(address.port),
        "RABBITMQ_DEFAULT_USER": address.user,
        "RABBITMQ_DEFAULT_PASS": address.password,
        "RABBITMQ_JOB_EVENTS_EXCHANGE": "fetcher.job.events",
        "STREAMING_ENABLED": "true",
        "STREAMING_CLOUDEVENTS_SOURCE": "//test",
        "ALLOW_INSECURE_TLS": "true",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str]]:
    """The command with its exit code and what it printed."""
    monkeypatch.setenv("APP_ENC_KEY", KEY)
    monkeypatch.setenv("FETCHER_DATA_DIR", str(tmp_path / "data"))

    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["fetcher", "dlq", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        told = capsys.readouterr()
        return ended.value.code, told.out + told.err

    return command


@pytest.fixture
def fill(
    broker_settings: None,
    amqp_url: str,
    amqp_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Sequence[OutgoingMessage]], None]:
    """Puts letters into a queue of this test, which the command takes for its own."""
    name = amqp_name("dlq")
    monkeypatch.setattr(
        "fetcher.bootstrap.dead_letters.AmqpDeadLetterQueue",
        partial(AmqpDeadLetterQueue, queue=name),
    )

    async def publish(messages: Sequence[OutgoingMessage]) -> None:
        async with open_asyncio(lambda _: None):
            connection = BrokerConnection(broker_address(amqp_url), name="test")
            await declare_dead_letters(connection, name)
            await publish_all(connection, name, messages)
            await connection.aclose()

    return lambda messages: trio.run(publish, messages)
