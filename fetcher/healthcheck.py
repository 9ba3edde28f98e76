"""Asks the process beside it for its health: what a container runs to judge itself.

``python -m fetcher.healthcheck`` asks ``GET /health`` where the manager listens, and where nobody
does, where a worker does. Exit code 0: 200. Exit code 1: another status, nobody listens, or no
answer within 4 s. It is run every few seconds, so it imports nothing of the service's, unless a
file `.env` lies there, which the service reads too.
"""

import http.client
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

TIMEOUT_SECONDS: Final = 4.0
_ANY: Final = frozenset({"", "0.0.0.0", "::"})


def environment_here(variables: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """``variables``, and beneath them the folder's `.env`, where the service reads it."""
    if not (folder / ".env").exists():
        return variables
    from fetcher.settings import process_environment  # noqa: PLC0415 - see the head of the module

    return process_environment(variables, folder).variables


def addresses(environment: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Host and port of the manager, then of the worker, as the service reads its settings."""
    yield _listening(
        environment.get("SERVER_ADDRESS", "").strip()
        or f":{environment.get('SERVER_PORT', '').strip() or 4006}"
    )
    yield "127.0.0.1", _health_port(environment.get("HEALTH_PORT", "").strip())


def _listening(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.strip().strip("[]")
    return "127.0.0.1" if host in _ANY else host, int(port)


def _health_port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdigit() else 0
    return port if 1 <= port <= 65535 else 4007


def is_healthy(environment: Mapping[str, str]) -> bool:
    """Whoever listens first is asked; one that listens and does not answer is not healthy."""
    for host, port in addresses(environment):
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except ConnectionRefusedError:
            continue
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
    return False


if __name__ == "__main__":
    sys.exit(0 if is_healthy(environment_here(os.environ, Path.cwd())) else 1)
