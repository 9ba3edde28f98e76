"""Answers that are remembered for a while, and asked for by one at a time."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

import trio

from fetcher.domain.errors import PortError
from fetcher.domain.tenants import TenantAnswerUnreadable, TenantError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Question(Generic[V]):
    """Somebody asks; who wants the same waits for ``over``."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.over = trio.Event()
        self.answer: V | None = None
        self.failure: PortError | None = None
        self.is_void = False
        """Nobody else may use its answer, and it is not remembered."""


class Remembered(Generic[K, V]):
    """At most ``entries`` answers, those used last, each for ``seconds``; failures are not kept.

    A PortError of ``ask`` is raised to all who waited for its answer; one that is a word against
    the tenant ends what was remembered. Where ``ask`` is cancelled, the next of them asks.
    """

    def __init__(self, ask: Callable[[K], Awaitable[V]], *, seconds: float, entries: int) -> None:
        self._ask = ask
        self._seconds = seconds
        self._entries = entries
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._asked: dict[K, _Question[V]] = {}
        self._numbers = count(1)

    async def get(self, key: K, *, fresh: bool = False) -> V:
        """The answer; with ``fresh`` one that was asked for after this call."""
        since = next(self._numbers) if fresh else 0
        while True:
            kept = None if fresh else self._look_up(key)
            if kept is not None:
                await trio.lowlevel.checkpoint()
                return kept[0]
            question = self._asked.get(key)
            if question is None:
                return await self._put(key)
            await question.over.wait()
            if question.is_void or question.number < since:
                continue
            if question.failure is not None:
                raise _twin(question.failure)
            if question.answer is not None:
                return question.answer

    def forget(self, key: K) -> None:
        """Also of a question that is on its way: who asks from now on hears of what is then."""
        self._kept.pop(key, None)
        if (question := self._asked.get(key)) is not None:
            question.is_void = True

    def _look_up(self, key: K) -> tuple[V, float] | None:
        kept = self._kept.get(key)
        if kept is None or trio.current_time() >= kept[1]:
            return None
        self._kept.move_to_end(key)
        return kept

    async def _put(self, key: K) -> V:
        question = self._asked[key] = _Question(next(self._numbers))
        try:
            answer = question.answer = await self._ask(key)
        except PortError as failure:
            question.failure = failure
            if _is_final(failure):
                self._kept.pop(key, None)
            raise
        finally:
            del self._asked[key]
            question.over.set()
        if not question.is_void:
            self._keep(key, answer)
        return answer

    def _keep(self, key: K, answer: V) -> None:
        self._kept[key] = (answer, trio.current_time() + self._seconds)
        self._kept.move_to_end(key)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)


def _is_final(failure: PortError) -> bool:
    return isinstance(failure, TenantError) and not isinstance(failure, TenantAnswerUnreadable)


def _twin(failure: PortError) -> PortError:
    """One of its own for each task: an exception that is raised collects where it has been."""
    twin = type(failure).__new__(type(failure), *failure.args)
    twin.__dict__.update(failure.__dict__)
    return twin
