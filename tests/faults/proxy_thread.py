"""Fault proxies for tests that run no event loop, and for the processes they start."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import trio

from tests.faults.faults import Fault, Kind
from tests.faults.proxy import FaultProxy

T = TypeVar("T")
ANSWER_SECONDS = 10.0


class ThreadedProxy:
    """A proxy that a thread of its own serves; ``port`` of the loopback address leads to the
    server. May be turned from any thread, from inside an event loop as well: nothing is awaited.
    """

    def __init__(self, proxy: FaultProxy, token: trio.lowlevel.TrioToken) -> None:
        self._proxy = proxy
        self._token = token
        self.port = proxy.port

    @property
    def accepted(self) -> int:
        return self._proxy.accepted

    @property
    def met(self) -> int:
        return self._proxy.met

    def turn(self, fault: Fault | None) -> None:
        """As :meth:`FaultProxy.turn`; it holds when this returns."""
        self._in_its_thread(lambda: self._proxy.turn(fault))

    def open(self) -> None:
        self.turn(None)

    def shut(self) -> None:
        self.turn(Fault(kind=Kind.CUT))

    def silence(self) -> None:
        self.turn(Fault(kind=Kind.BLACKHOLE))

    def _in_its_thread(self, action: Callable[[], T]) -> T:
        done: Future[T] = Future()

        def act() -> None:
            try:
                done.set_result(action())
            except Exception as failure:  # noqa: BLE001 - raised where it was asked for
                done.set_exception(failure)

        self._token.run_sync_soon(act)
        return done.result(ANSWER_SECONDS)


@contextmanager
def threaded_proxy(host: str, port: int, *, seed: int = 0) -> Iterator[ThreadedProxy]:
    """Until the block ends; then every socket and the thread are gone."""
    started: Future[tuple[FaultProxy, trio.lowlevel.TrioToken, trio.CancelScope]] = Future()

    async def main() -> None:
        with trio.CancelScope() as scope:
            proxy = FaultProxy(host, port, seed=seed)
            started.set_result((proxy, trio.lowlevel.current_trio_token(), scope))
            await proxy.run()

    thread = threading.Thread(target=trio.run, args=(main,), name=f"proxy to port {port}")
    thread.start()
    proxy, token, scope = started.result(ANSWER_SECONDS)
    try:
        yield ThreadedProxy(proxy, token)
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(ANSWER_SECONDS)
        assert not thread.is_alive()
