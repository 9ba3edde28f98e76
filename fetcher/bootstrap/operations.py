"""What the operators' routes are given."""

import os
import socket
from collections.abc import Callable, Mapping
from functools import partial

from fetcher.actors.board import ActorBoard
from fetcher.actors.probe_history import ProbeHistory
from fetcher.adapters.breaker import CircuitBreaker
from fetcher.api.services import OperationsServices
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.keys import work_verifier
from fetcher.commands.held_back_jobs import HeldBackJobs
from fetcher.commands.operate_dead_letters import OperateDeadLetters
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.verify_work import VerifyWork
from fetcher.ports import ProcessFacts
from fetcher.settings import Role, Settings


def process_facts(settings: Settings, role: Role) -> ProcessFacts:
    """Made once, at the start."""
    return ProcessFacts(
        host=socket.gethostname(),
        pid=os.getpid(),
        role=role.value,
        version=settings.version,
        started_at=utc_now(),
    )


def operations_services(
    adapters: Adapters, facts: ProcessFacts, *, history: ProbeHistory, board: ActorBoard
) -> OperationsServices:
    records = adapters.records
    held_back = HeldBackJobs(
        jobs=records.jobs,
        breakers=records.breakers,
        resolve=ResolveSources(internal=adapters.internal_sources, stored=records.connections),
        now=utc_now,
    )
    verifier = VerifyWork(
        verifier=work_verifier(adapters.keys), now=utc_now, tenant=adapters.tenant
    )
    return OperationsServices(
        process=facts,
        dependencies=history.known,
        actors=board.states,
        adapter_breakers=adapter_breakers(adapters),
        queues=adapters.queue.depths,
        letters=OperateDeadLetters(
            queue=adapters.queue.letters,
            verifier=verifier,
            outbox=records.dispatch,
            held_back=held_back,
        ),
        statistics=records.statistics,
        breakers=records.breakers,
        events=records.events,
        dispatch=records.dispatch,
    )


def adapter_breakers(adapters: Adapters) -> Mapping[str, Callable[[], str]]:
    """The broker's; and that process memory stands in for Redis is the same thing."""
    states: dict[str, Callable[[], str]] = {
        f"rabbitmq_{part}": partial(_state_of, breaker)
        for part, breaker in adapters.queue.breakers.items()
    }
    is_away = adapters.shared.is_away
    if is_away is not None:
        states["redis"] = lambda: "open" if is_away() else "closed"
    return states


def _state_of(breaker: CircuitBreaker) -> str:
    return breaker.state.value
