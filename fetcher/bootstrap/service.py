"""One process from start to exit code."""

import sys

import structlog
import trio

from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.signals import drain_on_signals, open_signals
from fetcher.actors.supervisor import ShutdownTimes, Supervisor
from fetcher.bootstrap.adapters import open_adapters
from fetcher.bootstrap.garbage import spare_what_is_there
from fetcher.bootstrap.roster import Roster
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import StartRefused
from fetcher.logs import configure_logs
from fetcher.settings import Role, Settings

log = structlog.get_logger(__name__)

EXIT_OK = 0
EXIT_FAILED = 1


def run_service(settings: Settings, role: Role) -> int:
    """Run until a signal or a failure; the exit code: 0 after a clean drain, else 1."""
    configure_logs(
        env_name=settings.env_name, level=settings.log_level, encoding=settings.log_encoding
    )
    try:
        return trio.run(serve, settings, role)
    except StartRefused as refused:
        for problem in refused.problems:
            print(f"failed to initialize {role.value} service: {problem}", file=sys.stderr)
        return EXIT_FAILED


async def serve(settings: Settings, role: Role) -> int:
    log.info(
        "startup_banner",
        version=settings.version,
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
            async with open_adapters(settings, role) as adapters:
                roster = Roster(settings, role, adapters, lifecycle)
                supervisor = Supervisor(
                    roster.actors(),
                    lifecycle=lifecycle,
                    times=ShutdownTimes(
                        drain_seconds=settings.readyz_drain_delay_sec,
                        job_wait_seconds=settings.shutdown_job_wait_sec,
                    ),
                    metrics=roster.metrics,
                )
                spare_what_is_there()
                await supervisor.run()
        except StartRefused as problem:
            refused.append(problem)


def report_stray(exception_type: str) -> None:
    log.error("asyncio_stray_exception", exception=exception_type)
