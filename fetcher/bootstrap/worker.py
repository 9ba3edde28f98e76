"""The worker's actors: from a delivery to a recorded job, and what mends what others left."""

import os
import socket
from dataclasses import dataclass
from functools import partial

import structlog

from fetcher.actors.extractor import Extractor
from fetcher.actors.intake import Intake
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.metrics import ActorMetrics
from fetcher.actors.outbox_repairer import OutboxRepairer
from fetcher.actors.reaper import Reaper
from fetcher.actors.supervisor import Actor, Supervised
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.breakers import LoggedBreakers
from fetcher.bootstrap.channels import Channels
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.publishing import Publishing
from fetcher.bootstrap.told import ToldOnce
from fetcher.commands.job_sources import JobSources
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.run_job import JobRunParts, RunJob
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.keys import KeyRing
from fetcher.crypto.sealer import ResultSealer
from fetcher.crypto.signer import MessageVerifier
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.settings import Settings

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """What the worker shares with the rest of its process."""

    settings: Settings
    adapters: Adapters
    channels: Channels
    lifecycle: Lifecycle
    metrics: ActorMetrics
    publishing: Publishing
    recover: RecoverConnection
    breaker_log: LoggedBreakers


def worker_actors(parts: WorkerParts) -> list[Supervised]:
    settings, adapters, channels = parts.settings, parts.adapters, parts.channels
    assert adapters.objects is not None  # noqa: S101 - open_adapters gives a worker its store
    job_run = _job_run(parts)

    def outcome_of(job: Job, status: JobStatus) -> TerminalOutcome:
        return job_run.cancelled(job) if status is JobStatus.CANCELLED else job_run.lost(job)

    places = settings.rabbitmq_numbers_of_workers
    owner = f"{socket.gethostname()}:{os.getpid()}"
    intake = Intake(
        consumer=adapters.queue.consumer,
        verifier=VerifyWork(
            verifier=MessageVerifier(
                [k.internal_hmac for k in adapters.keys],
                allow_legacy=settings.rabbitmq_allow_legacy_body_signature_fallback,
            ),
            now=utc_now,
            saw_legacy=partial(_tell_legacy_signature, ToldOnce()),
        ),
        orders=channels.orders,
        leases=adapters.records.leases,
        store_away=channels.store_away,
        places=places,
        lifecycle=parts.lifecycle,
        metrics=parts.metrics,
    )
    keeper = LeaseKeeper(
        leases=adapters.records.leases,
        commands=channels.leases,
        times=LeaseTimes(
            lease_seconds=settings.job_lease_sec,
            renew_seconds=settings.job_lease_renew_sec,
            margin_seconds=settings.job_lease_margin_sec,
        ),
    )
    repairer = OutboxRepairer(
        events=parts.publishing.events(),
        outbox=adapters.records.events,
        metrics=parts.metrics,
        reference=parts.publishing.reference_events(),
        repair_seconds=settings.outbox_repair_sec,
    )
    reaper = Reaper(
        expired=adapters.records.expired,
        cleanup=adapters.records.cleanup,
        objects=adapters.objects,
        outcome_of=outcome_of,
        keys_of=job_run.keys,
        dispatch_hints=channels.dispatch_hints,
        relay_hints=channels.relay_hints,
        metrics=parts.metrics,
        reap_seconds=settings.job_reap_sec,
    )
    extractors = [
        Extractor(
            number=number,
            owner=owner,
            leases=adapters.records.leases,
            lease_seconds=settings.job_lease_sec,
            hold_seconds=settings.rabbitmq_consumer_timeout_sec / 2,
            job_run=job_run,
            orders=channels.orders,
            store_away=channels.store_away,
            lease_commands=channels.leases,
            relay_hints=channels.relay_hints,
            lifecycle=parts.lifecycle,
            metrics=parts.metrics,
        )
        for number in range(1, places + 1)
    ]
    actors: list[Actor] = [intake, keeper, repairer, reaper, *extractors]
    return [Supervised(actor) for actor in actors]


def _job_run(parts: WorkerParts) -> RunJob:
    settings, adapters = parts.settings, parts.adapters
    assert adapters.objects is not None  # noqa: S101 - as above
    breakers = SourceBreakers(
        breakers=adapters.records.breakers,
        recover=parts.recover,
        sources=adapters.engines,
        log=parts.breaker_log,
    )
    return RunJob(
        JobRunParts(
            sources=JobSources(
                resolve=ResolveSources(
                    internal=adapters.internal_sources, stored=adapters.records.connections
                ),
                breakers=breakers,
                max_wait_seconds=settings.job_max_wait_sec,
            ),
            breakers=breakers,
            leases=adapters.records.leases,
            engines=adapters.engines,
            objects=adapters.objects,
            cleanup=adapters.records.cleanup,
            new_sealer=partial(_new_sealer, adapters.keys),
            key_version=adapters.keys.version,
            key_prefix=settings.object_storage_key_prefix,
            now=utc_now,
            keeps_default_schema=settings.datasource_legacy_default_schema,
        )
    )


def _tell_legacy_signature(told: ToldOnce) -> None:
    if told.may_tell("legacy signature"):
        log.warning("legacy_body_signature_accepted")


def _new_sealer(keys: KeyRing) -> ResultSealer:
    return ResultSealer(storage_key=keys.current.storage, hmac_key=keys.current.external_hmac)
