"""From a connection's settings to a logged-in session (spec datasources 2, 4, 12.2).

trio dials; TLS and login are the driver's and run in a thread, ended from outside when their time
is over. Neither the environment nor a file decides where a connection goes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import oracledb
import trio

from fetcher.datasources.addresses import resolve
from fetcher.datasources.dialing import dial
from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.oracle.errors import INVALID_SETTING, PROTOCOL, TIMEOUT, connect_failure
from fetcher.datasources.oracle.line import Line, driver_uses
from fetcher.datasources.oracle.tls import NamedContext, tls_context
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import ThreadKind
from fetcher_engine import SourceFailure, Stage

TOTAL_SECONDS: Final = 10.0
LOGIN_SECONDS: Final = 5.0

CALLS: Final = ThreadKind(32)
"""Calls of all Oracle sessions of the process at a time."""

_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f()='\"\\,]")
"""The driver pastes service names into a descriptor: with these, one could name another host."""

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")

_NO_FOLDER: Final = "/dev/null/none"
"""Cannot exist: TNS_ADMIN would name a folder with wallets and aliases otherwise."""


@dataclass(frozen=True, slots=True)
class Service:
    """What to ask the listener for; exactly one of the two."""

    name: str | None = None
    sid: str | None = None


@dataclass(frozen=True, slots=True)
class Connected:
    connection: oracledb.Connection
    line: Line


def service_of(target: Target) -> Service:
    """``metadata.serviceName``, else ``metadata.sid``; raise SourceFailure ``invalid_setting``."""
    for key in ("serviceName", "sid"):
        value = target.metadata.get(key)
        if isinstance(value, str) and value.strip():
            text = value.strip()
            if _UNSAFE.search(text):
                break
            return Service(name=text) if key == "serviceName" else Service(sid=text)
    raise SourceFailure(Stage.SESSION, INVALID_SETTING)


async def connect(target: Target) -> Connected:
    """Resolve, dial, encrypt and log in within 10 seconds, 5 for one address.

    Raise SourceFailure. Cancelled or failed, nothing stays open.
    """
    service = service_of(target)
    if _CONTROLS.search(target.user) or "\0" in target.password:
        raise SourceFailure(Stage.SESSION, INVALID_SETTING)
    context = tls_context(target.tls, target.host)
    stage = [Stage.DNS]
    with trio.move_on_after(TOTAL_SECONDS):
        addresses = await resolve(
            target.host, target.port, judge=target.judge, threads=target.threads
        )
        return await _first_that_answers(target, service, context, addresses, stage)
    raise SourceFailure(stage[0], TIMEOUT)


async def _first_that_answers(
    target: Target,
    service: Service,
    context: NamedContext | None,
    addresses: Sequence[str],
    stage: list[Stage],
) -> Connected:
    """The next address is tried only while nobody has spoken to us: an answer is an answer."""
    failure = SourceFailure(Stage.TCP, "unreachable")
    for address in addresses:
        stage[0] = Stage.TCP
        try:
            dialled = await dial([address], target.port)
        except SourceFailure as refused:
            failure = refused
            continue
        line = Line(dialled, target.judge)
        line.stage = stage[0] = Stage.AUTH if context is None else Stage.TLS
        return await _log_in(target, service, context, address, line)
    raise failure


async def _log_in(
    target: Target, service: Service, context: NamedContext | None, address: str, line: Line
) -> Connected:
    def log_in() -> oracledb.Connection | SourceFailure:
        try:
            with driver_uses(line):
                return _driver_connect(target, service, context, address)
        except Exception as error:  # noqa: BLE001 - foreign code; its text stays here
            return line.refusal or connect_failure(line.stage, error)

    if context is not None:
        context.on_wrapped = lambda: setattr(line, "stage", Stage.AUTH)
    outcome: oracledb.Connection | SourceFailure | None = None
    is_done = False
    try:
        with trio.move_on_after(LOGIN_SECONDS):
            outcome = await DriverThread(target.threads.of(CALLS), line.shut).run(log_in)
        is_done = not isinstance(outcome, SourceFailure | None) and line.is_taken
    finally:
        if not is_done:
            line.close()
    if outcome is None:
        outcome = SourceFailure(line.stage, TIMEOUT)
    if isinstance(outcome, SourceFailure):
        raise outcome
    if not is_done:
        # a driver that dials by itself is not the one this was written for
        raise SourceFailure(Stage.SESSION, PROTOCOL)
    return Connected(outcome, line)


def _driver_connect(
    target: Target, service: Service, context: NamedContext | None, address: str
) -> oracledb.Connection:
    """Keywords only. ``machine``, ``osuser`` and ``terminal`` would tell the server about ours."""
    return oracledb.connect(
        user=target.user,
        password=target.password,
        host=address,
        port=target.port,
        protocol="tcp" if context is None else "tcps",
        service_name=service.name,
        sid=service.sid,
        ssl_context=context,
        # the context matches the name, and the driver would match the address
        ssl_server_dn_match=False,
        config_dir=_NO_FOLDER,
        tcp_connect_timeout=LOGIN_SECONDS,
        retry_count=0,
        expire_time=0,
        program="fetcher",
        machine="fetcher",
        osuser="fetcher",
        terminal="unknown",
        driver_name="fetcher",
    )
