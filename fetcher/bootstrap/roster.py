"""Who runs in a process without tenants."""

from collections.abc import Mapping

from quart_trio import QuartTrio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.supervisor import Supervised
from fetcher.adapters.breaker import BreakerState
from fetcher.api.application import create_app
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.live_metrics import LiveFigures
from fetcher.bootstrap.process_roster import ProcessRoster
from fetcher.bootstrap.work_roster import WorkRoster
from fetcher.bootstrap.worker import own_places
from fetcher.settings import Role, Settings


class Roster(ProcessRoster):
    """One roster of those who work, beside those who look after the process."""

    def __init__(
        self, settings: Settings, role: Role, adapters: Adapters, lifecycle: Lifecycle
    ) -> None:
        super().__init__(
            settings,
            role,
            lifecycle,
            probes=adapters.probes,
            redis_is_away=adapters.shared.is_away,
        )
        self._only = WorkRoster(self.view(), adapters, lifecycle, self.board, own_places(settings))
        self.show(figures_of(adapters, self._only))

    def work(self) -> list[Supervised]:
        return self._only.actors()

    def application(self) -> QuartTrio:
        return create_app(self._only.api_services())


def figures_of(adapters: Adapters, roster: WorkRoster) -> LiveFigures:
    def breakers() -> Mapping[str, BreakerState]:
        return {part: breaker.state for part, breaker in adapters.queue.breakers.items()}

    return LiveFigures(
        hints_dropped=lambda: roster.channels.hints_dropped,
        session_use=adapters.session_use,
        broker_breakers=breakers if adapters.queue.breakers else None,
        store_connections=adapters.store_connections,
        spool=adapters.spool,
    )
