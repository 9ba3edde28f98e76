"""A setting as it may be shown: what is a secret, or may hold one, is masked."""

import base64
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pydantic import SecretStr

from fetcher.settings.credentials_in_text import (
    MASK,
    credentials_in,
    decoded,
    parameters_in,
    without_credentials,
)

PROSE: Final = frozenset({"SWAGGER_TITLE", "SWAGGER_DESCRIPTION"})
"""Addresses in it end with a blank; a question mark or a sign of equality begins no parameter."""

_OPTION: Final = re.compile(r"\s*[\w.-]*\s*", re.ASCII)
HARMLESS_PARAMETERS: Final = frozenset(
    {
        *("replicaset", "directconnection", "loadbalanced", "srvmaxhosts", "srvservicename"),
        *("tls", "ssl", "tlsinsecure", "tlsallowinvalidcertificates", "tlsallowinvalidhostnames"),
        *("tlscafile", "tlscertificatekeyfile", "tlsdisableocspendpointcheck"),
        *("connecttimeoutms", "sockettimeoutms", "timeoutms", "waitqueuetimeoutms"),
        *("serverselectiontimeoutms", "serverselectiontryonce", "heartbeatfrequencyms"),
        *("localthresholdms", "maxpoolsize", "minpoolsize", "maxconnecting", "maxidletimems"),
        *("w", "wtimeout", "wtimeoutms", "j", "journal", "readconcernlevel", "readpreference"),
        *("readpreferencetags", "maxstalenessseconds", "retryreads", "retrywrites"),
        *("authsource", "authmechanism", "gssapiservicename", "compressors"),
        *("zlibcompressionlevel", "uuidrepresentation", "appname", "proxyhost", "proxyport"),
    }
)
"""Options of MongoDB's connection string that hold no credential; of all others only the name is
shown."""


def shown_value(name: str, value: object) -> object:
    """The value of the variable ``name`` as JSON has it."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    text = str(value)
    if name.endswith("_CA_CERT") and _holds_private_key(text):
        return MASK
    if name == "MONGO_PARAMETERS":
        return "&".join(_shown_parameter(each) for each in text.split("&"))
    pieces = r"\S+" if name in PROSE else r"(?s).+"
    return re.sub(pieces, lambda piece: without_credentials(piece[0]), text)


def hidden_in(name: str, text: str) -> Iterator[str]:
    """What :func:`shown_value` hides of a text, as far as it is a password or a parameter."""
    if name in PROSE:
        return
    if name.endswith("_CA_CERT") and _holds_private_key(text):
        yield text
    yield from credentials_in(text)
    is_mongos = name in ("MONGO_PARAMETERS", "MONGO_URI")
    parameters = text.split("&") if name == "MONGO_PARAMETERS" else parameters_in(text)
    for parameter in parameters:
        # MongoDB's drivers part them by a semicolon too, others have it in a value.
        for part in dict.fromkeys((parameter, *parameter.split(";"))):
            option, equals, value = part.partition("=")
            if not (is_mongos and _is_harmless(option, value)):
                yield from decoded(value if equals else option)


def _holds_private_key(text: str) -> bool:
    """Roots are no secret, but who copies a whole bundle has its key in them."""
    try:
        return b"PRIVATE KEY" in base64.b64decode(text)
    except ValueError:
        return False


def _is_harmless(option: str, value: str) -> bool:
    """A semicolon may be the end of the value, and begin another option."""
    return option.strip().lower() in HARMLESS_PARAMETERS and ";" not in value


def _shown_parameter(parameter: str) -> str:
    option, equals, value = parameter.partition("=")
    if not (equals and _OPTION.fullmatch(option)):
        # no option at all: nobody knows what it is
        return MASK if parameter.strip() else parameter
    return parameter if not value or _is_harmless(option, value) else f"{option}={MASK}"
