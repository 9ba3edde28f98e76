"""From a host name to addresses that may be dialled."""

import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from fetcher.datasources.addresses import resolve
from fetcher_engine import SourceFailure, Stage


def answering(*addresses: str) -> Any:
    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    return getaddrinfo


async def test_addresses_come_in_the_resolvers_order_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering("10.0.0.2", "10.0.0.1", "10.0.0.2"))
    assert await resolve("db.example.net", 5432) == ("10.0.0.2", "10.0.0.1")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_literal_is_not_looked_up(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.delattr(socket, "getaddrinfo")
    assert await resolve(address, 5432) == (address,)


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "no"), UnicodeError("label too long"), OSError(5, "io")]
)
async def test_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(SourceFailure) as caught:
        await resolve("nowhere.example.net", 5432)
    assert (caught.value.stage, caught.value.reason) == (Stage.DNS, "dns")


async def test_judge_sees_the_name_and_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering("8.8.8.8", "10.0.0.3"))
    seen: list[tuple[str, int, tuple[str, ...]]] = []

    def judge(host: str, port: int, addresses: Sequence[str]) -> None:
        seen.append((host, port, tuple(addresses)))
        raise SourceFailure(Stage.DNS, "host_refused")

    with pytest.raises(SourceFailure) as caught:
        await resolve("db.example.net", 5432, judge=judge)
    assert caught.value.reason == "host_refused"
    assert seen == [("db.example.net", 5432, ("8.8.8.8", "10.0.0.3"))]


async def test_resolver_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        release.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    try:
        with trio.move_on_after(0) as scope:
            await resolve("slow.example.net", 5432)
        assert scope.cancelled_caught
    finally:
        release.set()
