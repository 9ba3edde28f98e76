"""Something that happens at the n-th step of a job's tasks, whichever task takes it."""

from collections.abc import Callable
from contextvars import ContextVar

import trio

_watched: ContextVar[bool] = ContextVar("watched", default=False)


def watch_from_here() -> None:
    """Tasks that this one starts from now on, and those that they start, count."""
    _watched.set(True)


class Interruption(trio.abc.Instrument):
    """Calls ``interrupt`` at the n-th point of the watched tasks.

    Each step has two: before it, where what the task waited for has happened and its next
    checkpoint is the first to hear of the interruption; and behind it, where the task waits and is
    woken. ``interrupt`` may cancel scopes and set events, no more.
    """

    def __init__(self, at: int, interrupt: Callable[[], None]) -> None:
        self.points = 0
        self._at = at
        self._interrupt = interrupt

    @property
    def has_happened(self) -> bool:
        return self.points >= self._at

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._count(task)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._count(task)

    def _count(self, task: trio.lowlevel.Task) -> None:
        if task.context.get(_watched):
            self.points += 1
            if self.points == self._at:
                self._interrupt()
