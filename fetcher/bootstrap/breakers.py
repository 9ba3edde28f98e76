"""What the log says of connections that are left alone."""

import structlog

from fetcher.domain.breakers import BreakerChange
from fetcher.domain.errors import PortError

log = structlog.get_logger(__name__)


class LoggedBreakers:
    """Implements :class:`fetcher.commands.recover_connection.BreakerLog`."""

    def changed(self, change: BreakerChange) -> None:
        after = change.after
        if change.closed and change.before is not None:
            log.info("breaker_closed", source=change.before.config_name)
        elif after is not None and after.retry_at is not None and after is not change.before:
            log.warning(
                "breaker_opened" if change.opened else "breaker_stays_open",
                source=after.config_name,
                stage=after.down.stage,
                reason=after.down.reason,
                retry_in_seconds=round((after.retry_at - change.at).total_seconds(), 1),
            )

    def failed(self, failure: PortError) -> None:
        log.warning("breakers_unknown", code=failure.code)
