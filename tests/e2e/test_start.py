"""What a start does while everything it needs is away, and what it tells of its settings."""

import signal
from pathlib import Path

import pytest

from fetcher.cli.demo_server import free_port
from tests.servers.processes import fetcher_process, http_status

pytestmark = pytest.mark.e2e

START_SECONDS = 60.0


def test_dependencies_that_are_away_stop_no_start(tmp_path: Path) -> None:
    port, nobody = free_port(), free_port()
    (tmp_path / ".env").write_text(
        f"SERVER_ADDRESS=127.0.0.1:${{PORT}}\nPORT=1\nMONGO_HOST=127.0.0.1\nMONGO_PORT={nobody}\n"
        "MONGO_NAME=fetcher\nSTREAMING_BROKERS=broker.test:9092\nOBJECT_STORAGE_BUKET=canary\n"
    )
    environment = {
        "PORT": str(port),
        "APP_ENC_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "RABBITMQ_HOST": "127.0.0.1",
        "RABBITMQ_PORT_AMQP": str(nobody),
        "RABBITMQ_DEFAULT_USER": "u",
        "RABBITMQ_DEFAULT_PASS": "canary",
        "ALLOW_INSECURE_TLS": "true",
        "LOG_ENCODING": "json",
        "READYZ_DRAIN_DELAY_SEC": "0.2",
        "SHUTDOWN_JOB_WAIT_SEC": "1",
    }
    with fetcher_process(["--role=manager"], environment=environment, folder=tmp_path) as process:
        url = f"http://127.0.0.1:{port}"
        process.wait_until_answers(f"{url}/health", status=503, deadline_seconds=START_SECONDS)
        assert http_status(f"{url}/version") == 200
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=START_SECONDS) == 0
        log = process.log()
    assert "OBJECT_STORAGE_BUKET: unknown; did you mean OBJECT_STORAGE_BUCKET?" in log
    assert '"names":"STREAMING_BROKERS"' in log.replace('": "', '":"')
    for feature in ("mongo_tls", "rabbitmq_tls"):
        assert feature in log
    assert "canary" not in log
