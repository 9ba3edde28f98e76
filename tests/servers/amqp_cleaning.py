"""Deletes queues and exchanges of a broker, synchronously: a fixture's end has no event loop."""

import fcntl
import socket
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pamqp import base, commands, frame, header

DEADLINE_SECONDS = 10.0

FIXED_NAMES: Final = (
    "fetcher.extract-external-data.exchange",
    "fetcher.dlx",
    "fetcher.dlq",
    "fetcher.job.completed.queue",
    "fetcher.job.failed.queue",
)


class BrokerError(Exception):
    """The broker closed the connection or the channel; the text is the broker's reply."""


def delete(url: str, names: Sequence[str]) -> None:
    """Delete the queue and the exchange of each name. One that doesn't exist is no error.

    Raises:
        BrokerError: the broker refused.
        OSError: it can't be reached or was silent for 10 s.
    """
    parts = urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or 5672)
    with socket.create_connection(address, timeout=DEADLINE_SECONDS) as connection:
        broker = _Conversation(connection)
        broker.open(
            user=unquote(parts.username or "guest"),
            password=unquote(parts.password or "guest"),
            vhost=unquote(parts.path[1:]) or "/",
        )
        for name in names:
            broker.ask(1, commands.Queue.Delete(queue=name))
            broker.ask(1, commands.Exchange.Delete(exchange=name))
        broker.ask(
            0, commands.Connection.Close(reply_code=200, reply_text="done", class_id=0, method_id=0)
        )


@contextmanager
def fixed_names(url: str) -> Iterator[None]:
    """For a test that has the objects whose names no setting changes: alone among the processes
    that run tests, and without what another one has left; they go with it."""
    with Path(tempfile.gettempdir(), "fetcher-fixed-amqp-names.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        delete(url, FIXED_NAMES)
        try:
            yield
        finally:
            delete(url, FIXED_NAMES)


class _Conversation:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def open(self, *, user: str, password: str, vhost: str) -> None:
        self._connection.sendall(header.ProtocolHeader().marshal())
        self._receive()  # Connection.Start
        tune = self.ask(
            0, commands.Connection.StartOk(mechanism="PLAIN", response=f"\0{user}\0{password}")
        )
        if not isinstance(tune, commands.Connection.Tune):
            raise BrokerError(type(tune).__name__)
        self._send(
            0,
            commands.Connection.TuneOk(
                channel_max=tune.channel_max, frame_max=tune.frame_max, heartbeat=0
            ),
        )
        self.ask(0, commands.Connection.Open(virtual_host=vhost))
        self.ask(1, commands.Channel.Open())

    def ask(self, channel: int, request: base.Frame) -> base.Frame:
        self._send(channel, request)
        return self._receive()

    def _send(self, channel: int, request: base.Frame) -> None:
        self._connection.sendall(frame.marshal(request, channel))

    def _receive(self) -> base.Frame:
        head = self._exactly(7)
        size = struct.unpack(">BHI", head)[2]
        answer = frame.unmarshal(head + self._exactly(size + 1))[2]
        if isinstance(answer, commands.Connection.Close | commands.Channel.Close):
            message = f"{answer.reply_code} {answer.reply_text}"
            raise BrokerError(message)
        if not isinstance(answer, base.Frame):
            raise BrokerError(type(answer).__name__)
        return answer

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = self._connection.recv(count - len(received))
            if not piece:
                raise BrokerError("the broker closed the connection")
            received += piece
        return bytes(received)
