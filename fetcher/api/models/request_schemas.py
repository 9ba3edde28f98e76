"""What the API document says of request bodies, in the terms of the rules that judge them.

The models decode and fold names; the rules behind them judge and name every fault with the Wire's
codes. So the constraints are told here, from the rules' own figures, and not repeated by pydantic.
A member that is null counts as absent (spec rest-api 5.1), so what is optional may be null.
"""

from collections.abc import Mapping
from typing import Any, Final

from fetcher.commands import connection_rules as rules
from fetcher.compat.names import MAX_NAME_CHARACTERS
from fetcher.domain.connections import (
    FAIL_ON_INVALID_TEXT,
    INVALID_TEXT_OPTION,
    REPLACE_INVALID_TEXT,
    SourceType,
)
from fetcher.domain.job_filters import MAX_VALUES
from fetcher.domain.jobs import Operator
from fetcher.domain.tls_modes import TLS_MODES, VERIFYING_TLS_MODES

Schema = dict[str, Any]

BLANK: Final = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What the rules take for blank, within brackets; a regular expression's own class of blanks is
another one in each language."""
NOT_BLANK: Final = rf"[^{BLANK}]"
PRINTABLE: Final = rf"^[^\u0000-\u001f\u007f]*[^{BLANK}\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$"
NO_NUL: Final = r"^[^\u0000]*$"
NAME: Final = rf"^[^\u0000]*[^{BLANK}\u0000][^\u0000]*$"
HOST_NAME: Final = (
    r"^(?![^\n]*\.\.)(?!(?:[^\n]*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)$)"
    r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$"
)
"""The rule of :func:`fetcher.commands.connection_rules.is_host` for names."""

SOURCE_PATH: Final = (
    rf"^(?![{BLANK}]*/)(?!(?:[^\u0000]*/)?[{BLANK}]*\.\.[{BLANK}]*(?:/|$))(?=[^\u0000]*[^/.{BLANK}])"
    r"[^\\\u0000-\u001f\u007f]+$"
)
"""The rule of :func:`fetcher.commands.connection_rules.is_source_path`."""

_PEM: Final[Schema] = {
    "type": "string",
    "maxLength": rules.MAX_PEM_BYTES,
    "description": "PEM text, or base64 of it",
}


def nullable(schema: Mapping[str, object]) -> Schema:
    """Null is the same as absent."""
    return {"anyOf": [dict(schema), {"type": "null"}]}


_NO_TLS: Final[Schema] = {
    "type": "object",
    "properties": {name: {"enum": ["", None]} for name in ("mode", "ca", "cert", "key")},
    "additionalProperties": False,
    "description": "No TLS settings",
}


def _tls(source_type: SourceType) -> Schema:
    modes = list(TLS_MODES[source_type])
    verifying = sorted(VERIFYING_TLS_MODES.intersection(modes))
    schema = _tls_members({"type": "string", "enum": modes})
    schema["required"] = ["mode"]
    if verifying:
        schema["if"] = {"properties": {"mode": {"enum": verifying}}}
        schema["then"] = {"properties": {"ca": {**_PEM, "minLength": 1}}, "required": ["ca"]}
    return {"anyOf": [schema, _NO_TLS, {"type": "null"}]}


def _tls_members(mode: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {"mode": mode, **{name: nullable(_PEM) for name in ("ca", "cert", "key")}},
        "additionalProperties": False,
        "description": "`cert` and `key` go together",
    }


_METADATA: Final[Schema] = {
    "type": "object",
    "maxProperties": rules.MAX_METADATA_KEYS,
    "additionalProperties": True,
    "description": f"Anything; at most {rules.MAX_METADATA_VALUE_BYTES} bytes a value",
    "properties": {INVALID_TEXT_OPTION: {"enum": [FAIL_ON_INVALID_TEXT, REPLACE_INVALID_TEXT]}},
}
_MEMBERS: Final[Mapping[str, Schema]] = {
    "configName": {
        "type": "string",
        "minLength": rules.CONFIG_NAME_BYTES.start,
        "maxLength": rules.CONFIG_NAME_BYTES.stop - 1,
        "pattern": "^[a-zA-Z0-9_-]+$",
        "description": "Unique for a tenant",
    },
    "host": {
        "type": "string",
        "anyOf": [
            {"pattern": HOST_NAME, "maxLength": rules.MAX_HOST_CHARACTERS},
            {"format": "ipv4"},
            {"format": "ipv6"},
        ],
    },
    "port": {
        "type": "integer",
        "minimum": rules.PORTS.start,
        "maximum": rules.PORTS.stop - 1,
    },
    "databaseName": {
        "type": "string",
        "maxLength": rules.MAX_NAME_CHARACTERS,
        "pattern": PRINTABLE,
    },
    "userName": {"type": "string", "maxLength": rules.MAX_NAME_CHARACTERS, "pattern": PRINTABLE},
    "password": {
        "type": "string",
        "minLength": 1,
        "maxLength": rules.MAX_PASSWORD_CHARACTERS,
        "pattern": NO_NUL,
        "writeOnly": True,
    },
    "schema": {"type": "string", "maxLength": rules.MAX_NAME_CHARACTERS, "pattern": NO_NUL},
    "metadata": _METADATA,
}
_SERVERS: Final = tuple(each for each in SourceType if each is not SourceType.SQLITE)
_OF_SERVER: Final = ("configName", "type", "host", "port", "databaseName", "userName", "password")
_OPTIONAL: Final = ("schema", "metadata")


def create_connection_schema(schema: Schema) -> None:
    """One alternative a type, since each has its own TLS modes."""
    alternatives = [_of_server(each) for each in _SERVERS]
    schema.clear()
    schema.update({"type": "object", "anyOf": [*alternatives, _of_file()]})


def _of_server(source_type: SourceType) -> Schema:
    metadata = _METADATA
    if source_type is SourceType.ORACLE:
        service = {"type": "string", "pattern": rf"^[^{BLANK}()='\"\\,\u0000-\u001f\u007f]+$"}
        metadata = {
            **_METADATA,
            "properties": {**_METADATA["properties"], "serviceName": service},
            "required": ["serviceName"],
        }
    needed = [*_OF_SERVER, *(["metadata"] if source_type is SourceType.ORACLE else [])]
    return {
        "title": str(source_type),
        "type": "object",
        "properties": {
            **{name: _MEMBERS[name] for name in _OF_SERVER if name != "type"},
            "type": {"const": str(source_type)},
            "ssl": _tls(source_type),
            "schema": nullable(_MEMBERS["schema"]),
            "metadata": metadata if "metadata" in needed else nullable(metadata),
        },
        "required": needed,
    }


def _of_file() -> Schema:
    database = {
        "type": "string",
        "maxLength": rules.MAX_NAME_CHARACTERS,
        "pattern": SOURCE_PATH,
        "description": "A relative path below the folder of sources; only where SQLITE is allowed",
    }
    return {
        "title": str(SourceType.SQLITE),
        "type": "object",
        "properties": {
            "configName": _MEMBERS["configName"],
            "type": {"const": str(SourceType.SQLITE)},
            "databaseName": database,
            "metadata": nullable(_METADATA),
        },
        "required": ["configName", "type", "databaseName"],
    }


def patch_connection_schema(schema: Schema) -> None:
    """Any member alone; what fits together is judged on the whole record."""
    types = {"enum": [str(each) for each in SourceType]}
    modes = sorted({mode for each in SourceType for mode in TLS_MODES[each]})
    tls = nullable(_tls_members(nullable({"type": "string", "enum": modes})))
    tls["description"] = "null takes the TLS settings away"
    members = {name: _MEMBERS[name] for name in (*_OF_SERVER, *_OPTIONAL) if name != "type"}
    members["type"] = types
    # of a SQLITE file, which has no user
    members["userName"] = {**members["userName"], "pattern": r"^[^\u0000-\u001f\u007f]*$"}
    schema["properties"] = {name: nullable(below) for name, below in members.items()} | {"ssl": tls}
    schema["anyOf"] = [
        *({"required": [name], "properties": {name: below}} for name, below in members.items()),
        {"required": ["ssl"], "properties": {"ssl": {"type": "null"}}},
        {"required": ["ssl"], "properties": {"ssl": {"type": "object", "minProperties": 1}}},
    ]


_NAME: Final[Schema] = {"type": "string", "maxLength": MAX_NAME_CHARACTERS, "pattern": NAME}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean", "null"]}
_ORDERED: Final[Schema] = {"type": ["string", "number", "boolean"]}


def _values(items: Schema, *, least: int = 1, most: int = MAX_VALUES) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


_VALUES: Final[Mapping[Operator, Schema]] = {
    **dict.fromkeys((Operator.EQ, Operator.IN, Operator.NIN, Operator.NE), _values(_SCALAR)),
    **dict.fromkeys(
        (Operator.GT, Operator.GTE, Operator.LT, Operator.LTE), _values(_ORDERED, most=1)
    ),
    Operator.BETWEEN: _values(_ORDERED, least=2, most=2),
    Operator.LIKE: _values({"type": "string"}),
    **dict.fromkeys((Operator.IS_NULL, Operator.NOT_NULL), _values({"const": True}, most=1)),
}


def condition_schema(schema: Schema) -> None:
    """At least one operator; one that is null counts as absent."""
    schema["properties"] = {str(each): nullable(_VALUES[each]) for each in Operator}
    schema["anyOf"] = [
        {"required": [str(each)], "properties": {str(each): {"type": "array"}}} for each in Operator
    ]


def _names_to(below: Schema, *, least: int = 0, most: int | None = None) -> Schema:
    schema = {
        "type": "object",
        "propertyNames": _NAME,
        "additionalProperties": below,
        "minProperties": least,
    }
    return schema if most is None else {**schema, "maxProperties": most}


MAPPED_FIELDS: Final[Schema] = _names_to(
    _names_to(
        {
            "type": "array",
            "items": _NAME,
            "minItems": 1,
            "anyOf": [{"maxItems": 1}, {"items": {"not": {"const": "*"}}}],
            "description": "At most 50 different names, or `*` alone",
        },
        least=1,
        most=20,
    ),
    least=1,
    most=10,
)
ASKED_FIELDS: Final[Schema] = _names_to(
    nullable(_names_to(nullable({"type": "array", "items": _NAME}), most=20)), least=1, most=10
)


def filters_schema(schema: Schema) -> None:
    """A condition holds something; every name is one."""
    condition = {"$ref": "#/components/schemas/ConditionRequest"}
    filters = _names_to(nullable(_names_to(nullable(_names_to(condition)))))
    schema.clear()
    schema.update(nullable(filters))


def create_job_schema(schema: Schema) -> None:
    """Both members are needed, and neither may be null."""
    schema["required"] = ["dataRequest", "metadata"]
    schema["properties"]["dataRequest"] = {"$ref": "#/components/schemas/DataRequest"}


JOB_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {"source": {"type": "string", "pattern": NOT_BLANK}},
    "required": ["source"],
    "propertyNames": {
        "pattern": r"^(?!\$)(?!terminalEvent)(?!error$)[^.\u0000]*$",
    },
    "description": "`source` is the product that asks; at most 64 KiB",
}
