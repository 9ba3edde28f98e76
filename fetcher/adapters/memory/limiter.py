"""The limit of connection tests where there is no Redis (spec rest-api 8.7)."""

from collections import OrderedDict
from dataclasses import dataclass

import trio

CAPACITY = 10
REFILL_SECONDS = 6.0
MAX_KEYS = 10_000
_ROUNDING = 1e-9
"""So that whoever waited exactly the told time is let through."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class MemoryTestLimiter:
    """A token bucket a key: starts full with 10, gains one every 6 s of trio's clock.

    Only the 10 000 keys used last are remembered: a forgotten one starts full again, which at
    worst forgives a caller, and never grows the process.
    """

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    async def take(self, key: str) -> float:
        """Seconds to wait until there is a token: 0 means taken."""
        await trio.lowlevel.checkpoint()
        now = trio.current_time()
        bucket = self._buckets.setdefault(key, _Bucket(CAPACITY, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        gained = (now - bucket.filled_at) / REFILL_SECONDS
        bucket.tokens = min(CAPACITY, bucket.tokens + gained)
        bucket.filled_at = now
        if bucket.tokens < 1 - _ROUNDING:
            return (1 - bucket.tokens) * REFILL_SECONDS
        bucket.tokens = max(0.0, bucket.tokens - 1)
        return 0.0
