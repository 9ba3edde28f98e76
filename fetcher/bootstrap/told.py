"""What may happen thousands of times in an outage is told once a minute."""

import math
from typing import Final

import trio

TELL_SECONDS: Final = 60.0


class ToldOnce:
    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}

    def may_tell(self, what: str) -> bool:
        """Whether this has not been told for a minute; then it counts as told now."""
        now = trio.current_time()
        if now - self._told_at.get(what, -math.inf) < TELL_SECONDS:
            return False
        self._told_at[what] = now
        return True
