"""Waits between tries: exponential with full jitter."""

import random
from dataclasses import dataclass
from typing import Final


def full_jitter(tries: int, *, base_seconds: float, cap_seconds: float) -> float:
    """A random wait in ``[0, min(base * 2 ** tries, cap)]`` seconds; ``tries`` counts from 0.

    Full jitter spreads the tries of many replicas best (Brooker, "Exponential Backoff And Jitter").
    """
    ceiling = min(base_seconds * 2 ** min(tries, 32), cap_seconds)
    return random.uniform(0, ceiling)  # noqa: S311  # spreads load, guards no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Full jitter after failures in a row: the first is followed by up to ``first_seconds``."""

    first_seconds: float
    cap_seconds: float

    def pause_seconds(self, failures: int) -> float:
        """``failures`` counts from 1."""
        return full_jitter(
            failures - 1, base_seconds=self.first_seconds, cap_seconds=self.cap_seconds
        )


CONSUMER_BACKOFF: Final = Backoff(first_seconds=1.0, cap_seconds=30.0)
TENANT_CONSUMER_BACKOFF: Final = Backoff(first_seconds=5.0, cap_seconds=40.0)
"""Hundreds of them lose a broker in the same moment (spec configuration 11.8)."""
