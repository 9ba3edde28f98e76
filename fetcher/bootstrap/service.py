"""One process from start to exit code."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import structlog
import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.signals import drain_on_signals, open_signals
from fetcher.actors.supervisor import ShutdownTimes, Supervisor
from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.garbage import spare_what_is_there
from fetcher.bootstrap.process_roster import ProcessRoster
from fetcher.bootstrap.roster import Roster
from fetcher.bootstrap.telemetry import open_tracer
from fetcher.bootstrap.versions import running_version
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import StartRefused
from fetcher.domain.visible_text import visible
from fetcher.log_secrets import live_secrets
from fetcher.log_stream import flush_logs
from fetcher.logs import configure_logs
from fetcher.ports import Tracer
from fetcher.settings import Role, SettingNotes, Settings, secrets_of

log = structlog.get_logger(__name__)

EXIT_OK = 0
EXIT_FAILED = 1


NO_NOTES: Final = SettingNotes()


def run_service(settings: Settings, role: Role, notes: SettingNotes = NO_NOTES) -> int:
    """Run until a signal or a failure; the exit code: 0 after a clean drain, else 1."""
    live_secrets.hold(secrets_of(settings))
    configure_logs(
        env_name=settings.env_name,
        level=settings.log_level,
        encoding=settings.log_encoding,
        has_tenants=settings.multi_tenant_enabled,
    )
    tell(notes)
    try:
        return trio.run(serve, settings, role)
    except StartRefused as refused:
        flush_logs()
        for problem in refused.problems:
            line = f"failed to initialize {role.value} service: {problem}"
            print(visible(line), file=sys.stderr)
        return EXIT_FAILED


def tell(notes: SettingNotes) -> None:
    if notes.misses_env_file:
        log.info("env_file_missing")
    for warning in notes.warnings:
        log.warning("setting_doubtful", problem=warning)
    if notes.ignored:
        log.info("settings_ignored", names=", ".join(notes.ignored))


async def serve(settings: Settings, role: Role) -> int:
    log.info(
        "startup_banner",
        version=running_version(settings),
        env_name=settings.env_name or "local",
        role=role.value,
        deployment_mode=settings.deployment_mode.value,
    )
    if settings.needs_data_folder:
        log.warning(
            "single_machine_mode",
            data_folder=str(settings.fetcher_data_dir),
            meaning="embedded parts: one process, one machine",
        )
    lifecycle = Lifecycle()
    refused: list[StartRefused] = []
    with open_signals() as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain_on_signals, signals, lifecycle)
            # The refusal is carried out by hand: nurseries would wrap it into groups.
            await run_actors(settings, role, lifecycle, refused)
            nursery.cancel_scope.cancel()
    if refused:
        raise refused[0]
    if lifecycle.failure is not None:
        log.error("process_failed", why=lifecycle.failure)
        return EXIT_FAILED
    log.info("process_ended")
    return EXIT_OK


async def run_actors(
    settings: Settings, role: Role, lifecycle: Lifecycle, refused: list[StartRefused]
) -> None:
    """Open the adapters and run the role's actors until the end of the drain."""
    async with open_asyncio(report_stray):
        try:
            async with (
                open_tracer(settings, role) as tracer,
                open_roster(settings, role, tracer, lifecycle) as roster,
            ):
                supervisor = Supervisor(
                    roster.actors(),
                    lifecycle=lifecycle,
                    times=ShutdownTimes(
                        drain_seconds=settings.readyz_drain_delay_sec,
                        job_wait_seconds=settings.shutdown_job_wait_sec,
                    ),
                    metrics=roster.metrics,
                    board=roster.board,
                )
                spare_what_is_there()
                await supervisor.run()
        except StartRefused as problem:
            refused.append(problem)


@asynccontextmanager
async def open_roster(
    settings: Settings, role: Role, tracer: Tracer, lifecycle: Lifecycle
) -> AsyncIterator[ProcessRoster]:
    """Raise StartRefused. What tenants need is not even loaded where there are none."""
    if settings.multi_tenant_enabled:
        from fetcher.bootstrap.tenancy.process import open_tenants_roster  # noqa: PLC0415 - as said

        async with open_tenants_roster(settings, role, tracer, lifecycle) as with_tenants:
            yield with_tenants
        return
    async with open_adapters(settings, role, tracer) as adapters:
        yield Roster(settings, role, adapters, lifecycle)


def report_stray(exception_type: str) -> None:
    log.error("asyncio_stray_exception", exception=exception_type)
