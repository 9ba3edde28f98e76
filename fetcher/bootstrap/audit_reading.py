"""The audit trail for the command line: beside a running service, without its lock."""

import trio

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.bootstrap.command_places import open_places
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.domain.audit import AuditPage, AuditQuery
from fetcher.domain.errors import PortError, StartRefused

AUDIT_FAILURES = (PortError, StartRefused)


async def read_audit(target: CommandTarget, query: AuditQuery) -> AuditPage:
    """Raise PortError, or StartRefused where there is no record store yet."""
    settings = target.settings
    folder = DataFolder(settings.fetcher_data_dir) if settings.needs_data_folder else None
    if folder is not None and settings.record_store_is_embedded:
        await refuse_absent(trio.Path(folder.database))
    async with (
        open_places(target) as places,
        places.records(folder, only_looks=True) as records,
    ):
        return await records.audit.list_page(query)


async def refuse_absent(database: trio.Path) -> None:
    """Raise StartRefused where there is no such file: opening it would make an empty one."""
    if not await database.exists():
        raise StartRefused([f"FETCHER_DATA_DIR: {database.parent} has no records"])
