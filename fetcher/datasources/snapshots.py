"""Sources that read, but not in a snapshot (spec datasources 12.2)."""

import structlog

from fetcher.datasources.told_once import ToldOnce
from fetcher.domain.ids import ConnectionId
from fetcher_engine import SourceFailure, Stage

log = structlog.get_logger(__name__)


class SnapshotRefused(SourceFailure):
    """The server answered that it begins no such transaction: a proxy, or one too old for it."""

    def __init__(self) -> None:
        super().__init__(Stage.SESSION, "snapshot_refused")


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
