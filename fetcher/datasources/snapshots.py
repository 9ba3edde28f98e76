"""Sources that read, but not in a snapshot (spec datasources 12.2)."""

from collections.abc import Callable

import structlog

from fetcher.datasources.told_once import ToldOnce
from fetcher.domain.ids import ConnectionId
from fetcher_engine import SourceFailure, Stage

log = structlog.get_logger(__name__)


class SnapshotRefused(SourceFailure):
    """The server answered that it begins no such transaction: a proxy, or one too old for it."""

    def __init__(self) -> None:
        super().__init__(Stage.SESSION, "snapshot_refused")


class SnapshotNote:
    """Whether one reading had a snapshot, for its job; called where it is found to have none."""

    def __init__(self, on_refusal: Callable[[], None] = lambda: None) -> None:
        self._on_refusal = on_refusal
        self.has_snapshot = True

    def __call__(self) -> None:
        self.has_snapshot = False
        self._on_refusal()


class SnapshotRefusals:
    """Tells of each read without a snapshot, aloud only of a connection's first in the process."""

    def __init__(self) -> None:
        self._told = ToldOnce[ConnectionId]()

    def tell(self, connection_id: ConnectionId, config_name: str) -> None:
        is_news = self._told.is_news(connection_id)
        write = log.warning if is_news else log.info
        write(
            "snapshot_refused" if is_news else "read_without_snapshot",
            connection_id=str(connection_id),
            source=config_name,
            snapshot=False,
        )
