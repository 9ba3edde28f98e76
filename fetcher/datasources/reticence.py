"""With the host guard on, how far a dial came is not told: no source is a port scanner.

A tenant learns that its network does not reach the source, the operator's log learns the rest
(spec datasources, section 5).
"""

from typing import Final

import structlog

from fetcher.datasources.host_guard import HostRefused
from fetcher.datasources.records import record_of
from fetcher.domain.connections import Connection
from fetcher_engine import (
    BatchStream,
    ConnectionDescriptor,
    Connector,
    ConnectorFactory,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)

log = structlog.get_logger(__name__)

NETWORK: Final = "network"

_DIALLING: Final = (Stage.DNS, Stage.TCP, Stage.TLS)
_TELLING: Final = frozenset({"timeout", "reset", "protocol"})
"""What a port that is open, but is no such database, does after it took the connection."""

_HARMLESS: Final = frozenset({"tls_required"})
"""Only a database of the right kind says so, and its owner needs to know."""


class ReticentFactory:
    """Another factory's connectors; those of tenants' records say less."""

    def __init__(self, inner: ConnectorFactory) -> None:
        self._inner = inner
        self.requires_fields = inner.requires_fields

    def build(self, descriptor: ConnectionDescriptor) -> Connector:
        record = record_of(descriptor)
        connector = self._inner.build(descriptor)
        if record.is_internal:
            return connector
        return ReticentConnector(connector, record)


class ReticentConnector:
    """Passes everything through but the words of failures that describe the network."""

    def __init__(self, inner: Connector, record: Connection) -> None:
        self._inner = inner
        self._record = record

    async def test_connection(self) -> None:
        failure: SourceFailure
        try:
            return await self._inner.test_connection()
        except SourceFailure as error:
            failure = self._reworded(error)
        raise failure

    async def discover_schema(self) -> SchemaSnapshot:
        failure: SourceFailure
        try:
            return await self._inner.discover_schema()
        except SourceFailure as error:
            failure = self._reworded(error)
        raise failure

    async def open_stream(self, request: StreamRequest) -> BatchStream:
        failure: SourceFailure
        try:
            return await self._inner.open_stream(request)
        except SourceFailure as error:
            failure = self._reworded(error)
        raise failure

    async def close(self) -> None:
        await self._inner.close()

    def _reworded(self, error: SourceFailure) -> SourceFailure:
        if isinstance(error, HostRefused):
            log.info("host_refused", connection_id=str(self._record.id), rule=error.rule.value)
            return error
        if not _tells_of_the_network(error):
            return error
        log.info(
            "source_unreachable",
            connection_id=str(self._record.id),
            stage=error.stage.value,
            reason=error.reason,
        )
        return SourceFailure(Stage.TCP, NETWORK)


def _tells_of_the_network(error: SourceFailure) -> bool:
    if error.stage in _DIALLING:
        return error.reason not in _HARMLESS
    return error.stage is Stage.AUTH and error.reason in _TELLING
