"""A work message that nobody could work on, as it lies among the dead letters."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """``exchange`` and ``routing_key`` are the original ones, which the signature binds."""

    tag: int
    """By which the window that gave it out knows it."""
    body: bytes = field(repr=False)
    headers: Mapping[str, object] = field(repr=False)
    exchange: str
    routing_key: str
    reason: str
    """Ours (``bad_signature`` …), or the broker's own (``rejected``, ``delivery_limit`` …)."""
