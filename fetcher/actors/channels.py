"""Typed, bounded channels between actors, with one-shot replies.

A channel belongs to nobody's run: it outlives the restarts of the actors at its ends, so a message
that was sent before a crash is still there afterwards.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class ReplyLost(Exception):
    """Whoever should have answered ended without doing so."""


class Reply(Generic[T]):
    """A one-shot answer: set once by the receiver of a request, awaited once by its sender."""

    def __init__(self) -> None:
        self._answered = trio.Event()
        self._given_up = trio.Event()
        self._value: list[T] = []
        self._lost = False

    def set(self, value: T) -> None:
        """Answer. Only the first answer counts."""
        if not self._answered.is_set():
            self._value.append(value)
            self._answered.set()

    async def get(self) -> T:
        """Wait for the answer. Raise ReplyLost when it can no longer come.

        Cancelling the wait tells the other side, which need not go on (:meth:`answer_by`).
        """
        try:
            await self._answered.wait()
        finally:
            if not self._answered.is_set():
                self._given_up.set()
        if self._lost:
            raise ReplyLost
        return self._value[0]

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Leaving the context unanswered, by a crash or a cancellation, tells the one who waits."""
        try:
            yield
        finally:
            if not self._answered.is_set():
                self._lost = True
                self._answered.set()

    async def answer_by(self, work: Callable[[], Awaitable[T]]) -> None:
        """Answer what ``work`` returns; it is cancelled once nobody waits for the answer."""
        with self.answering():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when, self._given_up, nursery.cancel_scope)
                self.set(await work())
                nursery.cancel_scope.cancel()


class Channel(Generic[T]):
    """A bounded queue of frozen messages."""

    def __init__(self, name: str, *, capacity: int) -> None:
        self.name = name
        self.dropped = 0
        """Hints that found the channel full."""
        self._send, self._receive = trio.open_memory_channel[T](capacity)

    async def send(self, message: T) -> None:
        """Wait for a place: a full channel pushes back."""
        await self._send.send(message)

    async def send_until(self, message: T, ended: trio.Event) -> bool:
        """Wait for a place until ``ended`` is set; False where nobody has the message by then."""
        sent = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, ended, nursery.cancel_scope)
            await self.send(message)
            sent = True
            nursery.cancel_scope.cancel()
        return sent

    def offer(self, message: T) -> bool:
        """Give a hint without waiting: dropped and counted when full, found by the next sweep."""
        try:
            self._send.send_nowait(message)
        except trio.WouldBlock:
            self.dropped += 1
            return False
        return True

    async def receive(self) -> T:
        return await self._receive.receive()

    async def receive_until(self, ended: trio.Event) -> T | None:
        """The next message; None once ``ended`` is set. No message is lost on the way."""
        received: list[T] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, ended, nursery.cancel_scope)
            received.append(await self.receive())
            nursery.cancel_scope.cancel()
        return received[0] if received else None

    def receive_waiting(self, *, limit: int) -> list[T]:
        """Take what lies there, without waiting."""
        taken: list[T] = []
        while len(taken) < limit:
            try:
                taken.append(self._receive.receive_nowait())
            except trio.WouldBlock:
                break
        return taken

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            yield await self.receive()


async def _cancel_when(ended: trio.Event, scope: trio.CancelScope) -> None:
    await ended.wait()
    scope.cancel()
