"""Where the driver's failures become safe words (spec datasources, section 5).

Codes decide. Nothing of a text leaves this module: one is only searched for the listener's code.
"""

import errno
import re
import ssl
from dataclasses import dataclass
from typing import Final

from fetcher_engine import SourceFailure, Stage

INVALID_FILTER: Final = "invalid_filter"
INVALID_FILTER_VALUE: Final = "invalid_filter_value"
INVALID_TEXT: Final = "invalid_text"
INVALID_SETTING: Final = "invalid_setting"
SCHEMA_CHANGED: Final = "schema changed"
CELL_TOO_LARGE: Final = "cell_too_large"
UNSUPPORTED_TYPE: Final = "unsupported_type"
RESET: Final = "reset"
TIMEOUT: Final = "timeout"
PROTOCOL: Final = "protocol"
UNKNOWN: Final = "unknown"

_LISTENER_CODE: Final = re.compile(r"Similar to ORA-(\d{1,5})\)", re.ASCII)
"""DPY-6000 to 6003 carry the listener's code in their text alone."""

_CONNECT_REASONS: Final = {
    1017: "auth",
    1005: "auth",
    28000: "auth",
    28001: "auth",
    12514: "database_missing",
    12505: "database_missing",
    1045: "forbidden",
    12516: "too_many_connections",
    12519: "too_many_connections",
    12520: "too_many_connections",
    18: "too_many_connections",
    20: "too_many_connections",
    2391: "too_many_connections",
    1033: "starting_up",
    1034: "starting_up",
    12526: "starting_up",
    12528: "starting_up",
    **dict.fromkeys(range(28860, 28869), "tls"),
}

_DRIVER_CONNECT_REASONS: Final = {
    "DPY-3010": "unsupported_version",
    "DPY-3015": "auth",
    "DPY-4001": "auth",
    "DPY-4011": RESET,
    "DPY-4024": TIMEOUT,
    "DPY-4035": PROTOCOL,
    "DPY-4019": PROTOCOL,
    "DPY-6001": "database_missing",
    "DPY-6002": "tls",
    "DPY-6003": "database_missing",
    "DPY-6006": "tls",
}

_ERRNO_REASONS: Final = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ECONNRESET: RESET,
    errno.EPIPE: RESET,
    errno.ETIMEDOUT: TIMEOUT,
}

_STATEMENT_REASONS: Final = {
    1013: TIMEOUT,
    40: TIMEOUT,
    51: TIMEOUT,
    54: "lock_timeout",
    4021: "lock_timeout",
    30006: "lock_timeout",
    1031: "forbidden",
    1456: "forbidden",
    41900: "forbidden",
    1555: "conflict",
    8176: "conflict",
    8177: "conflict",
    60: "conflict",
    1033: "starting_up",
    1034: "starting_up",
    1089: "shut_down",
    1090: "shut_down",
    1092: "shut_down",
    28: "shut_down",
    1114: "out_of_resources",
    1652: "out_of_resources",
    4030: "out_of_resources",
    4031: "out_of_resources",
    4036: "out_of_resources",
    2396: TIMEOUT,
    29275: INVALID_TEXT,
}

_CHANGED: Final = frozenset({942, 904, 1446, 1466, 8103})
"""No such table, no such column; the table was changed after the snapshot began."""

_SNAPSHOT_REFUSED: Final = frozenset({900, 922, 3001, 16000})
"""Not understood (twice), not implemented, and how a standby refuses what it cannot do."""

_UNFIT_VALUES: Final = frozenset(
    {1410, 1426, 1461, 1465, 1722, 1830, 1840, 1841, 1843, 1847, 1858, 1861, 1867, 1873, 12899}
)
"""What the server says of a constant that is none of the wanted type."""

_NO_SUCH_OPERATION: Final = frozenset({932, 997, 22848, 22950})


@dataclass(frozen=True, slots=True)
class _Codes:
    ora: int
    driver: str


def connect_failure(stage: Stage, error: Exception) -> SourceFailure:
    """What a failed login says; causes behind it are asked first."""
    chain = _chain(error)
    for each in chain:
        if isinstance(each, ssl.SSLError):
            return SourceFailure(Stage.TLS, "tls")
        if isinstance(each, TimeoutError):
            return SourceFailure(stage, TIMEOUT)
        if isinstance(each, OSError):
            return SourceFailure(stage, _ERRNO_REASONS.get(each.errno or 0, RESET))
    for each in chain:
        codes = _codes(each)
        reason = _CONNECT_REASONS.get(codes.ora) or _DRIVER_CONNECT_REASONS.get(codes.driver)
        if reason is None and codes.driver.startswith("DPY-5"):
            reason = PROTOCOL
        if reason is not None:
            return SourceFailure(Stage.TLS if reason == "tls" else stage, reason)
    return SourceFailure(stage, UNKNOWN)


def statement_failure(stage: Stage, error: Exception, *, table: str | None) -> SourceFailure:
    """What a statement's code says."""
    if isinstance(error, UnicodeError):
        return SourceFailure(stage, INVALID_TEXT, table=table)
    if isinstance(error, OSError):
        return SourceFailure(stage, _ERRNO_REASONS.get(error.errno or 0, RESET), table=table)
    codes = _codes(error)
    if codes.ora in _CHANGED and table is not None:
        return SourceFailure(Stage.SCHEMA, SCHEMA_CHANGED, table=table)
    if stage is Stage.QUERY and codes.ora in _UNFIT_VALUES:
        return SourceFailure(stage, INVALID_FILTER_VALUE, table=table)
    if stage is Stage.QUERY and codes.ora in _NO_SUCH_OPERATION:
        return SourceFailure(stage, INVALID_FILTER, table=table)
    reason = _STATEMENT_REASONS.get(codes.ora)
    if reason is None:
        by_driver = {"DPY-4011": RESET, "DPY-1001": RESET, "DPY-4024": TIMEOUT}
        reason = by_driver.get(codes.driver)
    if reason is None and codes.driver.startswith("DPY-5"):
        reason = PROTOCOL
    return SourceFailure(stage, reason or UNKNOWN, table=table)


def refuses_snapshot(error: Exception) -> bool:
    """Whether the server says that it begins no such transaction, rather than that it fails to."""
    return _codes(error).ora in _SNAPSHOT_REFUSED


def _chain(error: BaseException) -> list[BaseException]:
    """The innermost cause first; a chain has no more than eight."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and len(found) < 8:
        found.append(each)
        each = each.__cause__
    return found[::-1]


def _codes(error: BaseException) -> _Codes:
    details = error.args[0] if error.args else None
    ora = getattr(details, "code", 0)
    driver = getattr(details, "full_code", "")
    if not isinstance(ora, int) or not isinstance(driver, str):
        return _Codes(0, "")
    if not ora and driver == "DPY-6000":
        found = _LISTENER_CODE.search(str(getattr(details, "message", "")))
        ora = int(found[1]) if found else 0
    return _Codes(ora, driver)
