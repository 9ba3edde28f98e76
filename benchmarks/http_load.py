"""Requests at a rate, or as fast as answers come: ``python -m benchmarks.http_load`` (a process of
its own, so that what it costs is not the server's).

Reads one JSON object: ``port``, ``requests`` (the bytes of each, as text) and either
``per_second`` (each is sent when it is due, whoever still waits) or ``connections`` (each sends
its next request when it has its answer). Prints one: latencies in milliseconds from the moment when
a request was due, seconds, and how often each status came.
"""

import json
import queue
import socket
import sys
import threading
import time
from collections import Counter
from typing import Any, Final

ANSWER_SECONDS: Final = 30.0
OPEN_CONNECTIONS: Final = 64
"""As many requests may wait at once before one that is due is sent late."""


class Load:
    def __init__(self, order: dict[str, Any]) -> None:
        self._port = int(order["port"])
        self._rate = order.get("per_second")
        self._places = int(order.get("connections", OPEN_CONNECTIONS))
        self._due: queue.SimpleQueue[tuple[float, bytes] | None] = queue.SimpleQueue()
        self._requests = [text.encode() for text in order["requests"]]
        self._latencies: list[float] = []
        self._statuses: Counter[str] = Counter()

    def run(self) -> dict[str, Any]:
        threads = [threading.Thread(target=self._sender) for _ in range(self._places)]
        for thread in threads:
            thread.start()
        started = time.perf_counter()
        for index, request in enumerate(self._requests):
            due = started
            if self._rate:
                due += index / self._rate
                time.sleep(max(0.0, due - time.perf_counter()))
            self._due.put((due, request))
        for _ in threads:
            self._due.put(None)
        for thread in threads:
            thread.join()
        return {
            "seconds": time.perf_counter() - started,
            "latencies_ms": self._latencies,
            "statuses": dict(self._statuses),
        }

    def _sender(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port), ANSWER_SECONDS) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = connection.makefile("rb")
            while (order := self._due.get()) is not None:
                due, request = order
                if not self._rate:
                    due = time.perf_counter()
                connection.sendall(request)
                status = _read_answer(answers)
                self._latencies.append((time.perf_counter() - due) * 1000)
                self._statuses[status] += 1


def _read_answer(answers: Any) -> str:
    status = answers.readline().split(b" ", 2)[1].decode()
    length = 0
    while (line := answers.readline().strip().lower()) != b"":
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    answers.read(length)
    return str(status)


def main() -> None:
    print(json.dumps(Load(json.loads(sys.stdin.read())).run()))


if __name__ == "__main__":
    main()
