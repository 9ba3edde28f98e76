"""The asyncio room for one command of an operator."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from fetcher.bridge import open_asyncio

P = ParamSpec("P")
T = TypeVar("T")


async def in_room(
    known: tuple[type[Exception], ...],
    fn: Callable[P, Awaitable[T]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """The command's result; its ``known`` failures come out as they are.

    They are carried out of the room by hand: its nurseries would wrap them into groups.
    """
    results: list[T] = []
    failed: list[Exception] = []
    async with open_asyncio(lambda _: None):
        try:
            results.append(await fn(*args, **kwargs))
        except known as failure:
            failed.append(failure)
    if failed:
        raise failed[0]
    return results[0]
