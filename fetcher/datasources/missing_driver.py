"""What stands in for a type whose driver is not installed (spec datasources 17.2)."""

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


class MissingDriverFactory:
    """Builds connectors that say ``driver_missing`` as soon as they are to connect."""

    requires_fields = False

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        """Nothing of these is needed to say so."""

    def build(self, descriptor: ConnectionDescriptor) -> Connector:  # noqa: ARG002 - it goes nowhere
        return _Connector()


class _Connector:
    async def test_connection(self) -> None:
        raise SourceFailure(Stage.SESSION, "driver_missing")

    async def discover_schema(self) -> SchemaSnapshot:
        raise SourceFailure(Stage.SESSION, "driver_missing")

    async def open_stream(self, request: StreamRequest) -> BatchStream:  # noqa: ARG002 - see above
        raise SourceFailure(Stage.SESSION, "driver_missing")

    async def close(self) -> None:
        """There is nothing."""
