"""What stands in for a type whose driver is missing (spec datasources 17.2), or that is off."""

from typing import Final

from fetcher.datasources.sessions import SessionLimits
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher_engine import (
    BatchStream,
    ConnectionDescriptor,
    Connector,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)

DRIVER_MISSING: Final = "driver_missing"
TYPE_OFF: Final = "type_off"


class MissingDriverFactory:
    """Builds connectors that say ``driver_missing`` as soon as they are to connect."""

    requires_fields = False

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        """Nothing of these is needed to say so."""

    def build(self, descriptor: ConnectionDescriptor) -> Connector:  # noqa: ARG002 - it goes nowhere
        return _Connector(DRIVER_MISSING)


class TypeOffFactory:
    """Builds connectors that say ``type_off``: there is no folder for files of SQLite."""

    requires_fields = False

    def build(self, descriptor: ConnectionDescriptor) -> Connector:  # noqa: ARG002 - it goes nowhere
        return _Connector(TYPE_OFF)


class _Connector:
    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def test_connection(self) -> None:
        raise SourceFailure(Stage.SESSION, self._reason)

    async def discover_schema(self) -> SchemaSnapshot:
        raise SourceFailure(Stage.SESSION, self._reason)

    async def open_stream(self, request: StreamRequest) -> BatchStream:  # noqa: ARG002 - see above
        raise SourceFailure(Stage.SESSION, self._reason)

    async def close(self) -> None:
        """There is nothing."""
