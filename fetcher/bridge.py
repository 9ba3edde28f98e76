"""The asyncio room: the only module that imports ``asyncio`` or ``trio_asyncio``.

aiormq, pymongo's async client, redis and aioboto3 are asyncio libraries. They run on one asyncio
loop, which runs on trio. Each operation crosses once (a crossing costs about 90 µs): pass a
coroutine function that does the whole operation. Cancellation crosses once too, so after a call
that was cancelled or timed out, close the connection or channel below it rather than reuse it.

Nobody else needs asyncio's names: a future given out by a library is watched with its own
``add_done_callback``, and a callback that runs on the asyncio side may only do what never waits,
such as ``send_nowait`` into a trio memory channel.
"""

import heapq
import socket
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, ParamSpec, TypeVar

import trio
from sniffio import thread_local as sniffio_library

from fetcher.fair_places import FairPlaces, limiter_of

with warnings.catch_warnings():
    # Python 3.13 deprecates a class that trio-asyncio 0.16 names when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import asyncio

    import trio_asyncio
    from trio_asyncio._handles import AsyncHandle

P = ParamSpec("P")
T = TypeVar("T")

READY_CALLBACKS_A_PASS: Final = 64
CLOSE_SECONDS: Final = 5.0
LOOK_UPS: Final = 64
LOOK_UPS_OF_A_NAME: Final = 2

_PINNED_RELEASE: Final = "0.16.0"
_PRIVATE_PARTS: Final = ("_main_loop_one", "_timers", "_q_recv", "_nursery")


class CancelledInside(Exception):
    """The library cancelled its own call, as aiormq does with what waits on a closed connection."""


@asynccontextmanager
async def open_asyncio(
    on_stray: Callable[[str], None], *, callbacks_a_pass: int = READY_CALLBACKS_A_PASS
) -> AsyncGenerator[None, None]:
    """Open the process's asyncio loop; everything that crosses must run inside, closed last.

    Open it once, outside every nursery whose tasks use :func:`run_asyncio` (the loop is found by a
    context variable, which tasks inherit from where they are started).

    ``on_stray`` is told the type of an exception that nobody awaited, and nothing else of it, since
    its text may hold secrets; it must not wait. Such an exception never ends the loop.

    With ``callbacks_a_pass`` 1 the loop is trio-asyncio's own, which runs one callback a scheduler
    pass; more drains that many ready ones, where this version of trio-asyncio lets us. Leaving
    cancels the asyncio tasks that are left and waits for them, and drops what a peer that hangs has
    not read yet of connections that were closed. A name that nobody resolves is given up with the
    call that needs it: the loop's own look-up would hold that until the resolver has ended.
    """
    async with trio_asyncio.open_loop() as loop:
        loop.set_exception_handler(_stray_handler(on_stray))
        loop.getaddrinfo = _LookUps().look_up
        if callbacks_a_pass > 1 and fast_pass_is_possible(loop):
            _install_fast_pass(loop, callbacks_a_pass)
        try:
            yield
        finally:
            _abort_lingering_transports(loop)


async def run_asyncio(fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run one asyncio coroutine function on the loop, in an asyncio task of its own.

    Its result and its exceptions come back as they are; a cancellation that the library made itself
    raises :class:`CancelledInside`. When the calling trio scope is cancelled or
    its deadline passes, one ``CancelledError`` is thrown into the coroutine; clean-up that awaits
    runs to its end, then ``trio.Cancelled`` is raised here. A coroutine that finishes in spite of
    it gives its result.
    """
    _check_open()
    try:
        return await trio_asyncio.aio_as_trio(fn)(*args, **kwargs)  # type: ignore[no-any-return]  # untyped library
    except asyncio.CancelledError:
        # Not ours: that one comes back as trio.Cancelled. A BaseException of asyncio must not
        # travel through trio code, where nobody can name it.
        pass
    raise CancelledInside


async def wait_in_place(awaitable: Awaitable[T], timeout: float | None) -> T:  # noqa: ASYNC109 - asyncio's own name
    """``asyncio.wait_for`` as it is since Python 3.12: nothing runs in a task of its own.

    The older one leaves that task behind when it is cancelled just after its time was over, and
    swallows a cancellation that comes with the result. Runs on the asyncio side.
    """
    async with asyncio.timeout(timeout):
        return await awaitable


@asynccontextmanager
async def asyncio_context(
    factory: Callable[[], AbstractAsyncContextManager[T]],
) -> AsyncGenerator[T, None]:
    """An asyncio context manager that opens and closes a client, entered from trio.

    ``factory`` and both ends run on the asyncio side, in different tasks. The exit is told of no
    exception, is shielded from cancellation and gets 5 seconds.
    """

    async def enter() -> tuple[AbstractAsyncContextManager[T], T]:
        manager = factory()
        return manager, await manager.__aenter__()

    async def leave(manager: AbstractAsyncContextManager[T]) -> None:
        await manager.__aexit__(None, None, None)

    manager, value = await run_asyncio(enter)
    try:
        yield value
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await run_asyncio(leave, manager)


def fast_pass_is_possible(loop: object) -> bool:
    """Whether the private parts that the fast pass stands on are there."""
    return trio_asyncio.__version__ == _PINNED_RELEASE and all(
        hasattr(loop, name) for name in _PRIVATE_PARTS
    )


def _check_open() -> None:
    if trio_asyncio.current_loop.get() is None:
        raise RuntimeError("the asyncio loop is not open here: see fetcher.bridge.open_asyncio")


def _stray_handler(
    on_stray: Callable[[str], None],
) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        exception = context.get("exception")
        kind = "no exception" if exception is None else type(exception).__name__
        # A report that fails has nobody left to be told; raising here would end the loop.
        with suppress(Exception):
            on_stray(kind)

    return handle


class _LookUps:
    """The loop's ``getaddrinfo``, by threads that are left alone when a call is given up.

    A resolver that hangs holds each for half a minute, however soon it was given up. So they are
    none of trio's own threads, and names that nobody resolves leave some to others.
    """

    def __init__(self) -> None:
        self._threads = FairPlaces(LOOK_UPS, leaves_room=True)

    async def look_up(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002 - asyncio's name
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        with suppress(OSError):
            # an address needs no resolver
            numeric = flags | socket.AI_NUMERICHOST
            return socket.getaddrinfo(host, port, family, type, proto, numeric)
        limiter = limiter_of(self._threads.of(str(host), LOOK_UPS_OF_A_NAME))

        async def ask() -> Any:
            return await trio.to_thread.run_sync(
                socket.getaddrinfo,
                *(host, port, family, type, proto, flags),
                abandon_on_cancel=True,
                limiter=limiter,
            )

        return await trio_asyncio.trio_as_aio(ask)()


def _abort_lingering_transports(loop: Any) -> None:
    """A closed connection stays until its last bytes are read, and a peer that hangs reads none."""
    for transport in list(getattr(loop, "_transports", {}).values()):
        # One that has lost its connection has no loop any more; it is there until it is collected.
        if transport.is_closing() and transport._loop is not None:
            transport.abort()


def _install_fast_pass(loop: Any, callbacks_a_pass: int) -> None:
    """Make one pass of this loop run up to ``callbacks_a_pass`` more callbacks that are ready.

    trio-asyncio goes back to trio's scheduler after each callback, which takes AMQP through it to
    0.26-0.6 of plain asyncio; draining brings 0.7-0.9 back. The first callback of a pass is run by
    the library's own method, which waits, times out and stops as before; the loop below repeats
    its second half for what lies ready, and stands back for a timer that is due.
    """
    own_pass = loop._main_loop_one

    async def fast_pass(no_wait: bool = False) -> None:
        await own_pass(no_wait)
        if no_wait:
            return
        for _ in range(callbacks_a_pass):
            if loop._timers and loop._timers[0]._when <= loop.time():
                return
            try:
                handle = loop._q_recv.receive_nowait()
            except trio.WouldBlock:
                return
            if isinstance(handle, asyncio.TimerHandle):
                heapq.heappush(loop._timers, handle)
            elif isinstance(handle, AsyncHandle):
                handle._context.run(loop._nursery.start_soon, handle._run, name=handle._callback)
                await handle._started.wait()
            elif not handle._cancelled:
                outer, sniffio_library.name = sniffio_library.name, "asyncio"
                try:
                    handle._run()
                finally:
                    sniffio_library.name = outer

    loop._main_loop_one = fast_pass
