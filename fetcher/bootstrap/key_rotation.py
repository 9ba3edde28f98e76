"""Stored credentials sealed anew, for the command line: beside a running service."""

from collections.abc import Callable

import structlog
import trio

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.bootstrap.audit import local_audit
from fetcher.bootstrap.audit_reading import refuse_absent
from fetcher.bootstrap.command_places import open_places
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.bootstrap.known_secrets import NotingCipher
from fetcher.commands.audit import Caller
from fetcher.commands.rotate_credentials import (
    RotateCredentials,
    Rotated,
    Rotation,
    RotationReport,
)
from fetcher.crypto.credentials import CredentialCipher
from fetcher.domain.audit import LOCAL, AuditAction, AuditOutcome
from fetcher.domain.errors import PortError, StartRefused
from fetcher.log_secrets import live_secrets
from fetcher.ports import RecordStore

ROTATION_FAILURES = (PortError, StartRefused)

log = structlog.get_logger(__name__)


async def rotate_keys(
    target: CommandTarget, *, dry_run: bool, tell: Callable[[Rotated, int, int], None]
) -> RotationReport:
    """Whatever its end, an entry of the audit trail and an event in the log, but for a dry run.

    Raise PortError, or StartRefused where there is no key or no record store yet.
    """
    settings = target.settings
    ring = existing_key_ring(settings)
    folder = DataFolder(settings.fetcher_data_dir) if settings.needs_data_folder else None
    if folder is not None and settings.record_store_is_embedded:
        await refuse_absent(trio.Path(folder.database))
    cipher = NotingCipher(CredentialCipher(ring), live_secrets)
    async with open_places(target) as places, places.records(folder) as records:
        rotate = RotateCredentials(
            connections=records.connections, credentials=records.credentials, cipher=cipher
        )
        if dry_run:
            return await rotate(dry_run=True, tell=tell)
        return await _recorded(records, rotate, tell)


async def _recorded(
    records: RecordStore, rotate: RotateCredentials, tell: Callable[[Rotated, int, int], None]
) -> RotationReport:
    async with local_audit(records.audit).deed(
        AuditAction.KEYS_ROTATED, Caller(actor=LOCAL)
    ) as deed:
        report = await rotate(dry_run=False, tell=tell)
        if not report.is_all_current:
            deed.outcome = AuditOutcome.PARTIAL
    log.info(
        "credentials_rotated",
        key_version=report.key_version,
        **{rotation.value: len(report.of(rotation)) for rotation in Rotation},
    )
    return report
