"""How many connections the driver has open, and how many of them are in use."""

from pymongo import monitoring


class PoolCount(monitoring.ConnectionPoolListener):
    """The driver calls these on the asyncio side; they count and do nothing else."""

    def __init__(self) -> None:
        self._open = 0
        self._in_use = 0

    def use(self) -> tuple[int, int]:
        return self._open, self._in_use

    def connection_created(self, event: monitoring.ConnectionCreatedEvent) -> None:  # noqa: ARG002 - the driver's interface, here and below
        self._open += 1

    def connection_closed(self, event: monitoring.ConnectionClosedEvent) -> None:  # noqa: ARG002
        self._open -= 1

    def connection_checked_out(self, event: monitoring.ConnectionCheckedOutEvent) -> None:  # noqa: ARG002
        self._in_use += 1

    def connection_checked_in(self, event: monitoring.ConnectionCheckedInEvent) -> None:  # noqa: ARG002
        self._in_use -= 1

    def connection_ready(self, event: monitoring.ConnectionReadyEvent) -> None: ...

    def connection_check_out_started(
        self, event: monitoring.ConnectionCheckOutStartedEvent
    ) -> None: ...

    def connection_check_out_failed(
        self, event: monitoring.ConnectionCheckOutFailedEvent
    ) -> None: ...

    def pool_created(self, event: monitoring.PoolCreatedEvent) -> None: ...

    def pool_ready(self, event: monitoring.PoolReadyEvent) -> None: ...

    def pool_cleared(self, event: monitoring.PoolClearedEvent) -> None: ...

    def pool_closed(self, event: monitoring.PoolClosedEvent) -> None: ...
