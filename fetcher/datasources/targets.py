"""Where a session goes and as whom: what every network source is given (spec datasources 2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fetcher.datasources.addresses import Judge
from fetcher.datasources.threads import PROCESS_THREADS, SourceThreads
from fetcher.domain.connections import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Every text is taken literally: none is ever pasted into a connection string.

    ``metadata`` is the connection's own: ``serviceName`` and ``sid`` (Oracle), ``authSource`` and
    ``directConnection`` (MongoDB), ``trustServerCertificate`` (SQL Server). ``judge`` decides which
    addresses may be dialled: it goes into every resolution; None lets all be. ``threads`` are those
    that may wait for the server.
    """

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    tls: TlsSettings | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    judge: Judge | None = field(default=None, repr=False)
    threads: SourceThreads = field(default=PROCESS_THREADS, repr=False)
