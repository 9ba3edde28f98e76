"""Why no connection to the broker came about: where, how far it came, and what may be the cause.

For commands and logs of whoever runs the service; hosts and ports are in it, no text of the driver.
"""

import socket
import ssl
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import trio
from aiormq.exceptions import (
    AuthenticationError,
    ConnectionClosed,
    ProbableAuthenticationError,
)

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.domain.errors import PortUnavailable

_DEEPEST: Final = 8
"""Of causes: the driver has the socket's own error within its own."""


_KNOWN: Final[Mapping[type[BaseException], tuple[str, str]]] = MappingProxyType(
    {
        AuthenticationError: ("auth", "the broker refused the credentials"),
        ProbableAuthenticationError: ("auth", "the broker refused the credentials"),
        ssl.SSLCertVerificationError: ("tls", "the broker's certificate was not accepted"),
        ssl.SSLError: ("tls", "TLS handshake failed (is it a plain port?)"),
        socket.gaierror: ("dns", "the host's name does not resolve"),
        UnicodeError: ("dns", "the host's name does not resolve"),
        ConnectionRefusedError: ("tcp", "refused: nothing listens there"),
        ConnectionClosed: ("session", "the broker closed the connection (is the vhost there?)"),
    }
)
"""Stage and reason; what is more special stands first."""


def connect_failure(
    error: BaseException, address: BrokerAddress, *, is_connected: bool
) -> PortUnavailable:
    """``is_connected``: the transport stood, with TLS where the address has it."""
    stage, reason = _stage_and_reason(_causes(error), address, is_connected=is_connected)
    scheme, host, port = address.scheme, address.host, address.port
    return PortUnavailable(
        f"the connection to the broker failed: {scheme}://{host}:{port}: {stage}: {reason}"
    )


def _stage_and_reason(
    causes: list[BaseException], address: BrokerAddress, *, is_connected: bool
) -> tuple[str, str]:
    for cause in causes:
        for kind, told in _KNOWN.items():
            if isinstance(cause, kind):
                return told
    if any(isinstance(cause, trio.TooSlowError | TimeoutError) for cause in causes):
        return _silence(address, is_connected=is_connected)
    if is_connected:
        return "session", f"what listens there does not speak AMQP{_or_tls(address)}"
    if address.tls:
        return "tcp or tls", "no connection (is it a plain port?)"
    return "tcp", "no connection"


def _silence(address: BrokerAddress, *, is_connected: bool) -> tuple[str, str]:
    if is_connected:
        return "session", f"timeout: no answer of AMQP{_or_tls(address)}"
    if address.tls:
        return "tcp or tls", "timeout: no TLS handshake (is it a plain port?)"
    return "tcp", "timeout"


def _or_tls(address: BrokerAddress) -> str:
    return "" if address.tls else " (is it a TLS port?)"


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and what it came of, the outermost first."""
    found: list[BaseException] = []
    while error is not None and len(found) < _DEEPEST:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
