"""What can go wrong on a TCP connection, and how it is drawn by chance."""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    SLICER = "slicer"
    """Tiny writes with pauses."""
    STALL = "stall"
    """Packets are held: connections stand, new ones too, and at its end all of it arrives."""
    BLACKHOLE = "blackhole"
    """Connections stand, new ones too, and nothing arrives any more. What has lost bytes cannot go
    on without them: it is cut when the fault ends."""
    CUT = "cut"
    """Closed on both sides, newcomers as well: a load balancer whose server is gone."""
    RESET = "reset"
    """As cut, by RST."""
    HALF_CLOSE = "half-close"
    """The receiver is told of the end, the sender of nothing; the other direction goes on. This
    does not heal when the fault ends: whoever was told has to close."""
    REFUSE = "refuse"
    """Nobody listens; what stood is reset."""


class Direction(StrEnum):
    UP = "up"
    """To the server."""
    DOWN = "down"
    """To the client."""
    BOTH = "both"


AFTER_BYTES: Final = frozenset({Kind.BLACKHOLE, Kind.CUT, Kind.RESET, Kind.HALF_CLOSE})
"""Those that may begin after some bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault with its sizes; a kind looks at its own alone.

    ``after_bytes`` of each connection and direction still pass, counted from when the fault began.
    """

    kind: Kind
    direction: Direction = Direction.BOTH
    after_bytes: int = 0
    latency_seconds: float = 0.0
    jitter_seconds: float = 0.0
    bytes_per_second: int = 1
    slice_bytes: int = 1
    pause_seconds: float = 0.0

    def concerns(self, direction: Direction) -> bool:
        return self.direction in (direction, Direction.BOTH)

    def __str__(self) -> str:
        """Its own sizes alone."""
        sizes = {
            Kind.LATENCY: f" of {self.latency_seconds:.3f} s + {self.jitter_seconds:.3f} s",
            Kind.BANDWIDTH: f" of {self.bytes_per_second} B/s",
            Kind.SLICER: f" of {self.slice_bytes} B each {self.pause_seconds:.4f} s",
        }
        late = f" after {self.after_bytes} B" if self.after_bytes else ""
        return f"{self.kind}{sizes.get(self.kind, '')}{late}, {self.direction}"


def drawn(kind: Kind, chance: random.Random) -> Fault:
    """A fault of that kind: the same from the same state of ``chance``.

    At once in half of the cases; else after so few bytes that a request or its answer is torn.
    """
    after_bytes = 0
    if kind in AFTER_BYTES and chance.random() < 0.5:
        after_bytes = chance.randint(1, 4096)
    return Fault(
        kind=kind,
        direction=chance.choice(list(Direction)),
        after_bytes=after_bytes,
        latency_seconds=chance.uniform(0.02, 0.4),
        jitter_seconds=chance.uniform(0, 0.2),
        bytes_per_second=chance.randint(2_000, 100_000),
        slice_bytes=chance.randint(1, 64),
        pause_seconds=chance.uniform(0.0002, 0.002),
    )
