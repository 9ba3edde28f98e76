"""The channels of one process: who talks to whom."""

from dataclasses import dataclass, field
from typing import Final

from fetcher.actors.channels import Channel
from fetcher.actors.messages import (
    DispatchHint,
    ExtractOrder,
    HealthQuestion,
    LeaseEnded,
    LeaseStarted,
    ProbeOrder,
    RelayHint,
    StoreAway,
)

HINTS: Final = 1000


@dataclass(frozen=True, slots=True)
class HealthChannels:
    """Between those who look after the process itself; they make their senders wait."""

    probe_orders: Channel[ProbeOrder] = field(
        default_factory=lambda: Channel("probes", capacity=100)
    )
    questions: Channel[HealthQuestion] = field(
        default_factory=lambda: Channel("health", capacity=100)
    )


@dataclass(frozen=True, slots=True)
class WorkChannels:
    """Between those who work on one tenant's jobs. Hints are dropped when full; the others make
    their senders wait."""

    dispatch_hints: Channel[DispatchHint] = field(
        default_factory=lambda: Channel("dispatch", capacity=HINTS)
    )
    relay_hints: Channel[RelayHint] = field(
        default_factory=lambda: Channel("relay", capacity=HINTS)
    )
    orders: Channel[ExtractOrder] = field(default_factory=lambda: Channel("orders", capacity=0))
    store_away: Channel[StoreAway] = field(
        default_factory=lambda: Channel("store_away", capacity=1)
    )
    leases: Channel[LeaseStarted | LeaseEnded] = field(
        default_factory=lambda: Channel("leases", capacity=100)
    )

    @property
    def hints_dropped(self) -> dict[str, int]:
        """By the channel's name."""
        hints = (self.dispatch_hints, self.relay_hints)
        return {channel.name: channel.dropped for channel in hints}
