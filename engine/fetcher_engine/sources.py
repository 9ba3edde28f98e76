"""From a config name to a connector in use, closed exactly once (spec 5.2, 10.2)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from fetcher_engine.concurrency import Concurrency
from fetcher_engine.connection import ConnectionDescriptor
from fetcher_engine.context import TenantContext
from fetcher_engine.errors import EngineError, ErrorCategory
from fetcher_engine.failures import from_store, store_unavailable, unknown_type
from fetcher_engine.port_check import check_port
from fetcher_engine.ports import ConnectionStore, Connector, ConnectorFactory, ConnectorRegistry

T = TypeVar("T")

_CLOSE_SECONDS = 5.0
"""How long a connector may take to close before it is left behind (spec 10.7)."""


class Sources:
    """The host's registry and store, as one operation uses them."""

    def __init__(
        self, *, registry: ConnectorRegistry, store: ConnectionStore, concurrency: Concurrency
    ) -> None:
        self._registry = registry
        self._store = store
        self._concurrency = concurrency

    async def find(self, tenant: TenantContext, config_name: str) -> ConnectionDescriptor | None:
        """The tenant's connection of this name, None where it has none."""
        found: object = await from_store(lambda: self._store.find_connection(tenant, config_name))
        if found is None or isinstance(found, ConnectionDescriptor):
            return found
        raise store_unavailable()

    def factory(self, descriptor: ConnectionDescriptor) -> ConnectorFactory:
        """Raise ``not_found`` for a type that nobody registered, ``unavailable`` if that fails."""
        try:
            factory = self._registry.connector(descriptor.type)
        except Exception:  # noqa: BLE001 - the boundary to a host's registry
            failure = _not_built(descriptor)
        else:
            if factory is not None:
                return factory
            failure = unknown_type(descriptor.type, descriptor.config_name)
        raise failure

    def requires_fields(self, descriptor: ConnectionDescriptor) -> bool:
        """Whether an empty list of fields is an error; raise as :meth:`factory` does."""
        factory = self.factory(descriptor)
        with suppress(Exception):
            return bool(factory.requires_fields)
        raise _not_built(descriptor)

    async def with_connector(
        self, descriptor: ConnectionDescriptor, use: Callable[[Connector], Awaitable[T]]
    ) -> T:
        """Build a connector, use it, and close it on every path; errors of closing are ignored."""
        connector = self._build(descriptor)
        return await self.cleaned_up_after(lambda: use(connector), connector.close)

    async def cleaned_up_after(
        self, use: Callable[[], Awaitable[T]], clean_up: Callable[[], Awaitable[None]]
    ) -> T:
        """What ``use`` returns; ``clean_up`` runs on every path, shielded and bounded."""
        try:
            result = await use()
        except GeneratorExit:
            # the coroutine is being thrown away: nothing may be awaited any more
            raise
        except BaseException:
            await self.shielded(clean_up)
            raise
        await self.shielded(clean_up)
        return result

    async def shielded(self, clean_up: Callable[[], Awaitable[None]]) -> None:
        """Run clean-up, protected and bounded."""
        await self._concurrency.run_shielded(_CLOSE_SECONDS, clean_up)

    def _build(self, descriptor: ConnectionDescriptor) -> Connector:
        factory = self.factory(descriptor)
        try:
            built = factory.build(descriptor)
        except Exception as error:  # noqa: BLE001 - the boundary to a host's factory
            passes = isinstance(error, EngineError) and error.category in (
                ErrorCategory.VALIDATION,
                ErrorCategory.NOT_FOUND,
            )
            failure = error if passes else _not_built(descriptor)
        else:
            with suppress(Exception):
                if (connector := check_port(built, Connector, "connector")) is not None:
                    return connector
            failure = _not_built(descriptor)
        raise failure


def _not_built(descriptor: ConnectionDescriptor) -> EngineError:
    text = "failed to build connector for connection"
    return EngineError(ErrorCategory.UNAVAILABLE, text, source=descriptor.config_name)
