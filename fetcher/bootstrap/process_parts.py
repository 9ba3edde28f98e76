"""What a process opens once, however many tenants it serves."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from fetcher.adapters.local.data_folder import DataFolder, own_data_folder
from fetcher.adapters.local.spool import FolderSpool
from fetcher.bootstrap.access import open_authorizer
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.host_guard import host_guard
from fetcher.bootstrap.keys import key_ring
from fetcher.bootstrap.known_secrets import NotingCipher
from fetcher.bootstrap.old_credentials import OldCredentialsCipher
from fetcher.bootstrap.shared_memory import SharedMemory, open_shared_memory
from fetcher.bootstrap.stores import OpenObjects, open_object_store, usable_spool
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing
from fetcher.datasources.host_guard import HostGuard
from fetcher.log_secrets import live_secrets
from fetcher.ports import Authorizer, PasswordCipher, Probe, Tracer
from fetcher.settings import Role, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessParts:
    """``objects`` is None in a manager that was given no store, ``authorizer`` in a worker, which
    nobody calls, and where everybody may do everything; ``folder`` where nothing is embedded."""

    settings: Settings
    role: Role
    folder: DataFolder | None
    keys: KeyRing
    cipher: PasswordCipher
    objects: OpenObjects | None
    shared: SharedMemory
    spool: FolderSpool | None
    guard: HostGuard | None
    authorizer: Authorizer | None
    tracer: Tracer

    @property
    def probes(self) -> tuple[Probe, ...]:
        """A manager without its store serves all but results (decisions)."""
        if self.objects is None or not self.role.works:
            return self.shared.probes
        return (self.objects.probe, *self.shared.probes)


@asynccontextmanager
async def open_process_parts(
    settings: Settings, role: Role, tracer: Tracer
) -> AsyncIterator[ProcessParts]:
    """Raise StartRefused for what no waiting can mend: a folder in use, an unusable key."""
    async with AsyncExitStack() as stack:
        folder: DataFolder | None = None
        if settings.needs_data_folder:
            folder = stack.enter_context(own_data_folder(settings.fetcher_data_dir))
        keys = key_ring(settings, folder)
        objects: OpenObjects | None = None
        if role.works or not settings.object_store_is_embedded:
            objects = await stack.enter_async_context(open_object_store(settings, folder))
        old_too = OldCredentialsCipher(CredentialCipher(keys), keys, now=utc_now)
        yield ProcessParts(
            settings=settings,
            role=role,
            folder=folder,
            keys=keys,
            cipher=NotingCipher(old_too, live_secrets),
            objects=objects,
            shared=await stack.enter_async_context(open_shared_memory(settings, role)),
            spool=await usable_spool(settings, folder) if role.works else None,
            guard=await host_guard(settings),
            authorizer=(
                await stack.enter_async_context(open_authorizer(settings)) if role.manages else None
            ),
            tracer=tracer,
        )
