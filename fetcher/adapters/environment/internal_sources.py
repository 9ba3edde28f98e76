"""Internal data sources from groups of environment variables (spec configuration 12.1)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from fetcher.domain.connections import Connection, Origin, SourceType, TlsSettings
from fetcher.domain.internal_sources import (
    INTERNAL_SOURCES,
    InternalSourceMissing,
    internal_source_id,
)
from fetcher.domain.json_values import JsonValue
from fetcher.domain.tls_modes import tls_mode_problem
from fetcher.settings import SourceGroup

_SINCE_EVER: Final = datetime(1, 1, 1, tzinfo=UTC)
"""What the Wire shows as an internal source's times (spec rest-api 13)."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_PORTS: Final = range(1, 65536)


class _Unusable(Exception):
    """A group is skipped; the text names the variable and its rule, never a value."""


@dataclass(frozen=True, slots=True)
class EnvironmentSources:
    """Implements :class:`fetcher.ports.InternalSources`.

    ``skipped`` says of each group that is not used why: one line, the variable first.
    """

    connections: Mapping[str, Connection] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    async def find(self, config_name: str) -> Connection:
        connection = self.connections.get(config_name)
        if connection is None:
            raise InternalSourceMissing(config_name)
        return connection


def environment_sources(groups: Iterable[SourceGroup]) -> EnvironmentSources:
    """The sources of all usable groups; of two with one name the first counts."""
    connections: dict[str, Connection] = {}
    skipped: list[str] = []
    for group in groups:
        try:
            connection = _connection(group)
        except _Unusable as unusable:
            skipped.append(str(unusable))
            continue
        if connection.config_name in connections:
            skipped.append(f"{group.variable('CONFIG_NAME')}: another group has this name")
            continue
        connections[connection.config_name] = connection
    return EnvironmentSources(connections, tuple(skipped))


def _connection(group: SourceGroup) -> Connection:
    if group.problem:
        raise _Unusable(group.problem)
    config_name = group.values.get("CONFIG_NAME", "").strip()
    if config_name not in INTERNAL_SOURCES:
        known = ", ".join(INTERNAL_SOURCES)
        raise _unusable(group, "CONFIG_NAME", f"must be one of {known}")
    source_type = _type(group, INTERNAL_SOURCES[config_name])
    return Connection(
        id=internal_source_id(config_name),
        config_name=config_name,
        type=source_type,
        host=_required(group, "HOST"),
        database_name=_required(group, "DATABASE"),
        port=_port(group),
        username=_plain(group, "USER"),
        password_encrypted="",
        plain_password=group.values.get("PASSWORD", ""),
        encryption_key_version="",
        origin=Origin.INTERNAL,
        created_at=_SINCE_EVER,
        updated_at=_SINCE_EVER,
        tls=_tls(group, source_type),
        metadata=_options(group.values.get("OPTIONS", "")),
    )


def _type(group: SourceGroup, wanted: SourceType) -> SourceType:
    if group.values.get("TYPE", "").strip().upper() != wanted:
        raise _unusable(group, "TYPE", f"must be {wanted}")
    return wanted


def _required(group: SourceGroup, suffix: str) -> str:
    value = _plain(group, suffix).strip()
    if not value:
        raise _unusable(group, suffix, "is required")
    return value


def _plain(group: SourceGroup, suffix: str) -> str:
    value = group.values.get(suffix, "")
    if _CONTROL.search(value):
        raise _unusable(group, suffix, "must not hold control characters")
    return value


def _port(group: SourceGroup) -> int:
    text = group.values.get("PORT", "").strip()
    if not _PORT.fullmatch(text) or int(text) not in _PORTS:
        raise _unusable(group, "PORT", "must be a port number")
    return int(text)


def _tls(group: SourceGroup, source_type: SourceType) -> TlsSettings | None:
    """The mode is the gate: certificates alone ask for nothing."""
    mode = group.values.get("SSLMODE", "")
    if not mode:
        return None
    if problem := tls_mode_problem(source_type, mode):
        raise _unusable(group, "SSLMODE", f"is {problem}")
    return TlsSettings(
        mode=mode,
        ca=group.values.get("SSL_CA", ""),
        cert=group.values.get("SSL_CERT", ""),
        key=group.values.get("SSL_KEY", ""),
    )


def _options(text: str) -> dict[str, JsonValue]:
    """``k=v&k=v`` without any decoding; a part without ``=`` is none."""
    pairs = (part.partition("=") for part in text.split("&"))
    return {key: value for key, equals, value in pairs if equals and key}


def _unusable(group: SourceGroup, suffix: str, rule: str) -> _Unusable:
    return _Unusable(f"{group.variable(suffix)}: {rule}")
