"""Attention and the request that it stops: never before it, never within it (MS-TDS 2.2.1.7)."""

import socket
from collections.abc import Callable
from typing import cast

import pytest

from fetcher.datasources.sqlserver.wire import ATTENTION, Wire

SQL_BATCH = 0x01
LAST, MORE = 0x01, 0x00
ATTENTION_PACKET = bytes([ATTENTION, LAST, 0, 8, 0, 0, 1, 0])


class Raw:
    """A socket that remembers what was sent, and does something while it sends."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_shut = False
        self.meanwhile: Callable[[], object] = int

    def sendall(self, data: bytes) -> None:
        self.sent.append(data)
        meanwhile, self.meanwhile = self.meanwhile, int
        meanwhile()

    def shutdown(self, how: int) -> None:
        self.is_shut = how == socket.SHUT_RDWR


def packet(kind: int, status: int) -> bytes:
    return bytes([kind, status, 0, 8, 0, 0, 1, 0])


@pytest.fixture
def raw() -> Raw:
    return Raw()


@pytest.fixture
def wire(raw: Raw) -> Wire:
    return Wire(cast("socket.socket", raw))


def test_a_request_that_was_sent_is_stopped_at_once(wire: Wire, raw: Raw) -> None:
    wire.sendall(packet(SQL_BATCH, LAST))
    assert wire.ask_to_stop()
    assert raw.sent == [packet(SQL_BATCH, LAST), ATTENTION_PACKET]


def test_without_a_request_nothing_is_sent(wire: Wire, raw: Raw) -> None:
    assert not wire.ask_to_stop()
    assert raw.sent == []


def test_whoever_asks_while_the_request_leaves_is_heard_behind_it(wire: Wire, raw: Raw) -> None:
    asked: list[bool] = []
    raw.meanwhile = lambda: asked.append(wire.ask_to_stop())
    wire.sendall(packet(SQL_BATCH, LAST))
    assert asked == [True]
    assert raw.sent == [packet(SQL_BATCH, LAST), ATTENTION_PACKET]
    assert not raw.is_shut


def test_half_a_request_is_ended_by_hanging_up(wire: Wire, raw: Raw) -> None:
    raw.meanwhile = wire.ask_to_stop
    wire.sendall(packet(SQL_BATCH, MORE))
    assert raw.sent == [packet(SQL_BATCH, MORE)]
    assert raw.is_shut


def test_an_answer_to_one_request_is_no_wish_about_the_next(wire: Wire, raw: Raw) -> None:
    raw.meanwhile = wire.ask_to_stop
    wire.sendall(packet(SQL_BATCH, LAST))
    wire.sendall(packet(SQL_BATCH, LAST))
    assert raw.sent == [packet(SQL_BATCH, LAST), ATTENTION_PACKET, packet(SQL_BATCH, LAST)]
