"""The worker's actors: from a delivery to a recorded job, and what mends what others left."""

import os
import socket
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from fetcher.actors.dead_letter_count import COUNT_SECONDS, DeadLetterCount
from fetcher.actors.extractor import Extractor
from fetcher.actors.intake import Intake
from fetcher.actors.job_metrics import JobMetrics
from fetcher.actors.lease_keeper import LeaseKeeper, LeaseTimes
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.outbox_repairer import OutboxRepairer
from fetcher.actors.reaper import Reaper
from fetcher.actors.retention import Retention
from fetcher.actors.sampled_metrics import DeadLetterShare
from fetcher.actors.supervisor import Actor, Supervised
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.bootstrap.adapters import Adapters
from fetcher.bootstrap.breakers import LoggedBreakers
from fetcher.bootstrap.channels import WorkChannels
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.keys import work_verifier
from fetcher.bootstrap.publishing import Publishing
from fetcher.bootstrap.sweep_times import SweepTimes
from fetcher.bootstrap.told import ToldOnce
from fetcher.commands.delete_result import DeleteResult
from fetcher.commands.job_sources import JobSources
from fetcher.commands.recover_connection import RecoverConnection
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.commands.run_job import JobRunParts, RunJob
from fetcher.commands.source_breakers import SourceBreakers
from fetcher.commands.verify_work import VerifyWork
from fetcher.crypto.keys import KeyRing
from fetcher.crypto.sealer import ResultSealer
from fetcher.domain.backoff import CONSUMER_BACKOFF, TENANT_CONSUMER_BACKOFF
from fetcher.domain.jobs import Job, JobStatus, TerminalOutcome
from fetcher.domain.retention import RetentionTimes
from fetcher.fair_places import FairPlaces, Places
from fetcher.settings import Settings

log = structlog.get_logger(__name__)

RETENTION_SPREAD_SECONDS: Final = 600.0
"""Over so long the first rounds of many tenants are spread: each begins with a pass over all."""


TENANT_JOBS: Final = 10
"""So many of one tenant run at once at most (spec configuration 11.8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaces:
    """Who gives a job its place, and how many of them there are at most."""

    places: Places
    at_most: int


def own_places(settings: Settings) -> JobPlaces:
    """Of a process without tenants."""
    at_most = settings.rabbitmq_numbers_of_workers
    return JobPlaces(places=trio.Semaphore(at_most), at_most=at_most)


def tenant_places(shared: FairPlaces, tenant_id: str) -> JobPlaces:
    at_most = min(TENANT_JOBS, shared.total)
    return JobPlaces(places=shared.of(tenant_id, at_most), at_most=at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """What the worker shares with the rest of its process."""

    settings: Settings
    adapters: Adapters
    channels: WorkChannels
    lifecycle: Lifecycle
    metrics: WorkerMetrics
    jobs: JobMetrics
    dead_letters: DeadLetterShare
    times: SweepTimes
    publishing: Publishing
    recover: RecoverConnection
    breaker_log: LoggedBreakers
    places: JobPlaces


def worker_actors(parts: WorkerParts) -> list[Supervised]:
    settings, adapters, channels = parts.settings, parts.adapters, parts.channels
    assert adapters.objects is not None  # noqa: S101 - open_adapters gives a worker its store
    job_run = _job_run(parts)

    def outcome_of(job: Job, status: JobStatus) -> TerminalOutcome:
        return job_run.cancelled(job) if status is JobStatus.CANCELLED else job_run.lost(job)

    times = parts.times
    hold_seconds = settings.rabbitmq_consumer_timeout_sec / 2
    owner = f"{socket.gethostname()}:{os.getpid()}"
    intake = Intake(
        consumer=adapters.queue.consumer,
        verifier=VerifyWork(
            verifier=work_verifier(
                adapters.keys,
                allow_legacy=settings.rabbitmq_allow_legacy_body_signature_fallback,
            ),
            now=utc_now,
            tenant=adapters.tenant,
            saw_legacy=partial(_tell_legacy_signature, ToldOnce()),
        ),
        orders=channels.orders,
        leases=adapters.records.leases,
        store_away=channels.store_away,
        places=parts.places.places,
        prefetch=parts.places.at_most,
        hold_seconds=hold_seconds,
        lifecycle=parts.lifecycle,
        metrics=parts.metrics,
        backoff=TENANT_CONSUMER_BACKOFF if settings.multi_tenant_enabled else CONSUMER_BACKOFF,
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
        reference=parts.publishing.reference_events(),
        repair_seconds=times.repair_seconds,
        first_after_seconds=times.first_after(times.repair_seconds),
    )
    reaper = Reaper(
        expired=adapters.records.expired,
        cleanup=adapters.records.cleanup,
        objects=adapters.objects,
        outcome_of=outcome_of,
        keys_of=job_run.keys,
        dispatch_hints=channels.dispatch_hints,
        relay_hints=channels.relay_hints,
        metrics=parts.jobs,
        reap_seconds=times.reap_seconds,
        tidy_seconds=times.tidy_seconds,
        first_after_seconds=times.first_after(times.reap_seconds),
    )
    extractors = [
        Extractor(
            number=number,
            owner=owner,
            leases=adapters.records.leases,
            lease_seconds=settings.job_lease_sec,
            hold_seconds=hold_seconds,
            job_run=job_run,
            orders=channels.orders,
            store_away=channels.store_away,
            lease_commands=channels.leases,
            relay_hints=channels.relay_hints,
            lifecycle=parts.lifecycle,
            metrics=parts.jobs,
            tracer=adapters.tracer,
        )
        for number in range(1, parts.places.at_most + 1)
    ]
    dead_letters = DeadLetterCount(
        levels=adapters.queue.dead_letters,
        now=utc_now,
        share=parts.dead_letters,
        first_after_seconds=times.first_after(COUNT_SECONDS),
    )
    actors: list[Actor] = [intake, dead_letters, keeper, repairer, reaper, *extractors]
    kept = RetentionTimes(
        job_days=settings.job_retention_days,
        result_days=settings.result_retention_days,
        audit_days=settings.audit_retention_days,
    )
    if not kept.keeps_everything:
        actors.append(_retention(parts, kept))
    return [Supervised(actor) for actor in actors]


def _retention(parts: WorkerParts, kept: RetentionTimes) -> Retention:
    records, seconds = parts.adapters.records, parts.settings.retention_sweep_sec
    return Retention(
        retention=records.retention,
        audit=records.audit,
        delete_result=DeleteResult(jobs=records.jobs, objects=parts.adapters.objects, now=utc_now),
        times=kept,
        metrics=parts.metrics,
        sweep_seconds=seconds,
        first_after_seconds=parts.times.first_after(min(seconds, RETENTION_SPREAD_SECONDS)),
    )


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
                tenant=adapters.tenant,
            ),
            breakers=breakers,
            leases=adapters.records.leases,
            engines=adapters.engines,
            objects=adapters.objects,
            cleanup=adapters.records.cleanup,
            new_sealer=partial(_new_sealer, adapters.keys),
            key_version=adapters.keys.version,
            key_prefix=adapters.tenant.object_prefix(settings.object_storage_key_prefix),
            tenant=adapters.tenant,
            now=utc_now,
            observer=parts.metrics,
            tracer=adapters.tracer,
            keeps_default_schema=settings.datasource_legacy_default_schema,
        )
    )


def _tell_legacy_signature(told: ToldOnce) -> None:
    if told.may_tell("legacy signature"):
        log.warning("legacy_body_signature_accepted")


def _new_sealer(keys: KeyRing) -> ResultSealer:
    return ResultSealer(storage_key=keys.current.storage, hmac_key=keys.current.external_hmac)
