"""A command's settings for the shared broker."""

import pytest

from tests.contract.queue.work_queues import broker_address


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
