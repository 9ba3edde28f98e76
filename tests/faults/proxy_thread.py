"""Fault proxies for tests that run no event loop, and for the processes they start."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import trio

from tests.faults.faults import Fault, Kind
from tests.faults.proxy import FaultProxy

T = TypeVar("T")
ANSWER_SECONDS = 10.0


class Served(Protocol):
    async def run(self) -> None:
        """Serve until cancelled."""
        ...


S = TypeVar("S", bound=Served)


class InItsThread(Generic[S]):
    """What a thread of its own serves; it is touched in that thread alone."""

    def __init__(self, served: S, token: trio.lowlevel.TrioToken) -> None:
        self._served = served
        self._token = token

    def do(self, action: Callable[[S], T]) -> T:
        """From any thread, from inside an event loop as well: nothing is awaited. It holds when
        this returns."""
        done: Future[T] = Future()

        def act() -> None:
            try:
                done.set_result(action(self._served))
            except Exception as failure:  # noqa: BLE001 - raised where it was asked for
                done.set_exception(failure)

        self._token.run_sync_soon(act)
        return done.result(ANSWER_SECONDS)


@contextmanager
def in_a_thread(make: Callable[[], S]) -> Iterator[InItsThread[S]]:
    """Until the block ends; then every socket and the thread are gone. ``make`` listens."""
    started: Future[tuple[S, trio.lowlevel.TrioToken, trio.CancelScope]] = Future()

    async def main() -> None:
        with trio.CancelScope() as scope:
            served = make()
            started.set_result((served, trio.lowlevel.current_trio_token(), scope))
            await served.run()

    thread = threading.Thread(target=trio.run, args=(main,), name="a proxy")
    thread.start()
    served, token, scope = started.result(ANSWER_SECONDS)
    try:
        yield InItsThread(served, token)
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(ANSWER_SECONDS)
        assert not thread.is_alive()


class ThreadedProxy:
    """``port`` of the loopback address leads to the server. May be turned from any thread."""

    def __init__(self, proxy: InItsThread[FaultProxy]) -> None:
        self._proxy = proxy
        self.port = proxy.do(lambda it: it.port)

    @property
    def accepted(self) -> int:
        return self._proxy.do(lambda it: it.accepted)

    @property
    def met(self) -> int:
        return self._proxy.do(lambda it: it.met)

    def turn(self, fault: Fault | None) -> None:
        """As :meth:`FaultProxy.turn`; it holds when this returns."""
        self._proxy.do(lambda it: it.turn(fault))

    def open(self) -> None:
        self.turn(None)

    def shut(self) -> None:
        self.turn(Fault(kind=Kind.CUT))

    def silence(self) -> None:
        self.turn(Fault(kind=Kind.BLACKHOLE))


@contextmanager
def threaded_proxy(host: str, port: int, *, seed: int = 0) -> Iterator[ThreadedProxy]:
    """Until the block ends."""
    with in_a_thread(lambda: FaultProxy(host, port, seed=seed)) as proxy:
        yield ThreadedProxy(proxy)
