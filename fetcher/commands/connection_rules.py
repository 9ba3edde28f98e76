"""What a connection may look like (spec rest-api 7.3 to 7.5; SQLITE: design section 8).

Every rule here is pure and linear in the length of its input. The texts name what the caller sent
by field, never by value.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from fetcher.domain.connections import (
    FAIL_ON_INVALID_TEXT,
    INVALID_TEXT_OPTION,
    REPLACE_INVALID_TEXT,
    SourceType,
)
from fetcher.domain.json_text import dumps
from fetcher.domain.json_values import JsonObject, holds_nul_key

CONFIG_NAME = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
CONFIG_NAME_BYTES = range(3, 101)
PORTS = range(1, 65536)

CONFIG_NAME_CHARACTERS = "needs letters, digits, '-' and '_' only"
CONFIG_NAME_RULE = "must have 3 to 100 characters"
HOST_RULE = "must be a host name or an IP address"
PORT_RULE = "must be between 1 and 65535"

MAX_NAME_CHARACTERS = 255
MAX_PASSWORD_CHARACTERS = 1024
MAX_PEM_BYTES = 64 * 1024
MAX_METADATA_KEYS = 64
MAX_METADATA_VALUE_BYTES = 2000
MAX_HOST_CHARACTERS = 253

CONTROL = re.compile(r"[\x00-\x1f\x7f]")

ORACLE_UNSAFE = re.compile(r"[()='\"\\,\s]")
"""In a service name or SID these would end it, and begin another part of the descriptor."""

_HOST = re.compile(r"[A-Za-z0-9.-]+", re.ASCII)
_NUMERIC_LABEL = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*", re.ASCII)
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----", re.ASCII)
_BLANKS = re.compile(r"\s+", re.ASCII)


def source_types(*, sqlite_allowed: bool) -> frozenset[SourceType]:
    """The types that a connection may have here."""
    return frozenset(SourceType) - (frozenset() if sqlite_allowed else {SourceType.SQLITE})


def type_rule(asked: str, known: Iterable[SourceType]) -> str:
    """Of a type that is none of ``known``."""
    is_off = asked == SourceType.SQLITE
    why = "the type SQLITE is off here: DATASOURCE_SQLITE_DIR; " if is_off else ""
    return f"{why}must be one of {', '.join(sorted(known))}"


def is_host(text: str) -> bool:
    """A literal address, or a host name by the linear rule of spec 7.5 with its improvements.

    Labels may begin with a digit; a name whose last label is a number is not a name but a badly
    written address (``127.1``), and some resolvers take it for one.
    """
    try:
        return ipaddress.ip_address(text) is not None and "%" not in text
    except ValueError:
        pass
    if len(text) > MAX_HOST_CHARACTERS or not _HOST.fullmatch(text) or ".." in text:
        return False
    if not (text[0].isalnum() and text[-1].isalnum()):
        return False
    return not _NUMERIC_LABEL.fullmatch(text.rpartition(".")[2])


def is_source_path(text: str) -> bool:
    """A relative path without ``..``; what lies there is the connector's to judge."""
    path = PurePosixPath(text)
    return (
        bool(path.name)
        and not path.is_absolute()
        and ".." not in path.parts
        and "\\" not in text
        and "\0" not in text
    )


def is_pem(text: str, *, certificate: bool) -> bool:
    """PEM text, or base64 of it (spec datasources 3.3): its framing and its encoding."""
    pem = text if "-----BEGIN" in text else _unwrapped(text)
    blocks = _PEM.findall(pem)
    wanted = "CERTIFICATE" if certificate else "PRIVATE KEY"
    return any(label.endswith(wanted) and _decoded(body) for label, body in blocks)


def _unwrapped(text: str) -> str:
    return _decoded(text).decode("ascii", "replace")


def _decoded(body: str) -> bytes:
    try:
        return base64.b64decode(_BLANKS.sub("", body), validate=True)
    except (binascii.Error, ValueError):
        return b""


def metadata_problem(metadata: JsonObject) -> str | None:
    """Why the metadata cannot be kept, or None."""
    if len(metadata) > MAX_METADATA_KEYS:
        return f"at most {MAX_METADATA_KEYS} keys"
    if any(len(key) > MAX_NAME_CHARACTERS for key in metadata):
        return f"at most {MAX_NAME_CHARACTERS} characters a key"
    if any(len(dumps(value).encode()) > MAX_METADATA_VALUE_BYTES for value in metadata.values()):
        return f"at most {MAX_METADATA_VALUE_BYTES} bytes a value"
    if holds_nul_key(metadata):
        return "keys must not hold a NUL character"
    return None


def invalid_text_problem(metadata: JsonObject) -> str | None:
    """Why the option ``invalidText`` cannot be obeyed, or None."""
    known = (FAIL_ON_INVALID_TEXT, REPLACE_INVALID_TEXT)
    if metadata.get(INVALID_TEXT_OPTION, FAIL_ON_INVALID_TEXT) in known:
        return None
    return f"must be '{FAIL_ON_INVALID_TEXT}' or '{REPLACE_INVALID_TEXT}'"
