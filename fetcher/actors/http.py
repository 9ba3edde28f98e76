"""Serves HTTP: the product's API, or the worker's health port."""

from collections.abc import Awaitable
from typing import Protocol

import trio

from fetcher.actors.lifecycle import Lifecycle


class Serve(Protocol):
    def __call__(
        self, *, stop: trio.Event, task_status: "trio.TaskStatus[None]"
    ) -> Awaitable[None]:
        """Serve until ``stop``, then finish the requests that run. Raise StartRefused when the
        address cannot be bound."""
        ...


class Http:
    """``until_closing`` serves until the drain window is over; otherwise to the very end."""

    def __init__(
        self, *, serve: Serve, lifecycle: Lifecycle, name: str = "http", until_closing: bool = True
    ) -> None:
        self.name = name
        self._serve = serve
        self._stop = lifecycle.closing if until_closing else trio.Event()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        await self._serve(stop=self._stop, task_status=task_status)
