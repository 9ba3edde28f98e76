"""Waits between tries: exponential with full jitter."""

import random


def full_jitter(tries: int, *, base_seconds: float, cap_seconds: float) -> float:
    """A random wait in ``[0, min(base * 2 ** tries, cap)]`` seconds; ``tries`` counts from 0.

    Full jitter spreads the tries of many replicas best (Brooker, "Exponential Backoff And Jitter").
    """
    ceiling = min(base_seconds * 2 ** min(tries, 32), cap_seconds)
    return random.uniform(0, ceiling)  # noqa: S311  # spreads load, guards no secret
