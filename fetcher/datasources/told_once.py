"""What the operator is told once in a process, however often it happens."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

REMEMBERED: Final = 10_000
"""Things that were told of; beyond that the oldest are news again."""

K = TypeVar("K", bound=Hashable)


class ToldOnce(Generic[K]):
    """Knows what was told of."""

    def __init__(self) -> None:
        self._told: OrderedDict[K, None] = OrderedDict()

    def is_news(self, thing: K) -> bool:
        """Whether it was not asked about before; from now on it was."""
        if thing in self._told:
            return False
        self._told[thing] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return True
