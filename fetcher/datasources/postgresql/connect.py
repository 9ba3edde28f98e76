"""From a connection's settings to a logged-in session (spec datasources 2, 4, 12.2).

libpq makes the connection, we wait: every step is cancelled at once and has its deadline, and the
step at which time runs out is known. No host name reaches libpq unresolved and nothing of the
environment or the home folder decides where it goes.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
import trio
from psycopg import pq
from psycopg.conninfo import make_conninfo

from fetcher.datasources.addresses import is_peer, resolve
from fetcher.datasources.postgresql.errors import TIMEOUT, connect_failure
from fetcher.datasources.postgresql.libpq import report_codes
from fetcher.datasources.postgresql.tls import tls_keywords
from fetcher.datasources.targets import Target
from fetcher.domain.errors import HOST_REFUSED
from fetcher_engine import SourceFailure, Stage

TOTAL_SECONDS: Final = 10.0
ADDRESS_SECONDS: Final = 5.0

_STAGES: Final[Mapping[int, Stage]] = {
    pq.ConnStatus.STARTED: Stage.TCP,
    pq.ConnStatus.SSL_STARTUP: Stage.TLS,
    pq.ConnStatus.MADE: Stage.AUTH,
    pq.ConnStatus.AWAITING_RESPONSE: Stage.AUTH,
    pq.ConnStatus.AUTH_OK: Stage.AUTH,
    pq.ConnStatus.CHECK_TARGET: Stage.SESSION,
}

_SILENT_SECONDS: Final = 30
"""How long a peer may be unreachable before the kernel gives the connection up."""


async def connect(target: Target) -> psycopg.Connection[tuple[Any, ...]]:
    """Resolve, dial, encrypt and log in within 10 seconds, 5 for one address.

    Raise SourceFailure. Cancelled or failed, nothing stays open.
    """
    texts = (target.host, target.database, target.user, target.password)
    if any("\0" in text for text in texts):
        # libpq takes C strings: the rest would be cut off
        raise SourceFailure(Stage.SESSION, "invalid_setting")
    stage = [Stage.DNS]
    with trio.move_on_after(TOTAL_SECONDS):
        addresses = await resolve(
            target.host, target.port, judge=target.judge, threads=target.threads
        )
        with tls_keywords(target.tls) as tls:
            return await _first_that_answers(target, tls, addresses, stage)
    raise SourceFailure(stage[0], TIMEOUT)


async def _first_that_answers(
    target: Target, tls: Mapping[str, str], addresses: Sequence[str], stage: list[Stage]
) -> psycopg.Connection[tuple[Any, ...]]:
    """The next address is tried only while nobody has spoken to us: an answer is an answer."""
    failure = SourceFailure(Stage.TCP, "unreachable")
    for address in addresses:
        outcome = await _attempt(_conninfo(target, tls, address), address, stage)
        if not isinstance(outcome, SourceFailure):
            return psycopg.Connection[tuple[Any, ...]](outcome)
        failure = outcome
        if failure.stage is not Stage.TCP:
            break
    raise failure


async def _attempt(
    conninfo: bytes, address: str, stage: list[Stage]
) -> pq.abc.PGconn | SourceFailure:
    stage[0] = Stage.TCP
    pgconn = pq.PGconn.connect_start(conninfo)
    report_codes(pgconn)
    connected = False
    try:
        with trio.move_on_after(ADDRESS_SECONDS):
            if not await _log_in(pgconn, stage):
                return connect_failure(stage[0], pgconn.error_message)
            with socket.socket(fileno=os.dup(pgconn.socket)) as peer:
                if not is_peer(peer, address):
                    return SourceFailure(Stage.TCP, HOST_REFUSED)
            connected = True
            pgconn.nonblocking = 1
            return pgconn
        return SourceFailure(stage[0], TIMEOUT)
    finally:
        if not connected:
            pgconn.finish()


async def _log_in(pgconn: pq.abc.PGconn, stage: list[Stage]) -> bool:
    """Drive libpq to the end of the login. False: it failed, and its message says how."""
    waiting_for = pq.PollingStatus.WRITING
    while pgconn.status != pq.ConnStatus.BAD:
        stage[0] = _STAGES.get(pgconn.status, stage[0])
        if waiting_for == pq.PollingStatus.READING:
            await trio.lowlevel.wait_readable(pgconn.socket)
        else:
            await trio.lowlevel.wait_writable(pgconn.socket)
        waiting_for = pq.PollingStatus(pgconn.connect_poll())
        if waiting_for == pq.PollingStatus.OK:
            return True
        if waiting_for == pq.PollingStatus.FAILED:
            return False
    return False


def _conninfo(target: Target, tls: Mapping[str, str], address: str) -> bytes:
    """psycopg quotes each value; none is read as anything but a value.

    What is not given here would come from the environment (PGPASSWORD, PGOPTIONS …) or from files.
    """
    return make_conninfo(
        "",
        host=target.host,
        hostaddr=address,
        port=target.port,
        dbname=target.database,
        user=target.user,
        password=target.password,
        passfile="/dev/null/none",  # cannot exist
        application_name="fetcher",
        client_encoding="UTF8",
        options="",
        gssencmode="disable",
        target_session_attrs="any",
        load_balance_hosts="disable",
        replication="",
        keepalives=1,
        keepalives_idle=30,
        keepalives_interval=10,
        keepalives_count=3,
        tcp_user_timeout=_SILENT_SECONDS * 1000,
        **tls,
    ).encode()
