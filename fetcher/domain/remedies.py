"""What to do about a data source that could not be reached, by the reason of its failure.

The texts hold nothing of a connection: neither host, nor user, nor what a server said.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_OTHERWISE: Final = "check its address, its network and the credentials"

_BY_REASON: Mapping[str, str] = MappingProxyType(
    {
        "auth": "the server refused the user or the password",
        "database_missing": "no database of that name is there: check databaseName",
        "dns": "the host's name does not resolve: check host",
        "driver_missing": "the driver for its type is not installed beside Fetcher",
        "forbidden": "the user may not use that database: check databaseName and the user's rights",
        "invalid_setting": "a setting cannot be used: check the connection's metadata",
        "protocol": "what answers there is no database of that type: check type and port",
        "refused": "nothing listens there: check host and port",
        "starting_up": "the server is starting: try again",
        "timeout": "no answer in time: check host and port, what lies between, and that a database "
        "of that type listens there",
        "tls": "TLS could not be set up: check ssl.mode, ssl.ca and whether the server offers TLS",
        "tls_required": "the server takes encrypted connections only: set ssl.mode",
        "too_many_connections": "the server has no connection left: try again",
        "too_many_sessions": "all sessions on it are taken by jobs: try again",
        "type_off": "the type SQLITE is off here: DATASOURCE_SQLITE_DIR",
        "unreachable": "there is no way to it in the network: check host",
        "unsupported_version": "the server is too old",
    }
)


def remedy(reason: str | None, *, stage: str | None = None) -> str:
    """One clause for people; programs decide by the reason itself."""
    if stage == "tls" and reason in ("timeout", "reset", "protocol"):
        reason = "tls"
    return _BY_REASON.get(reason or "", _OTHERWISE)
