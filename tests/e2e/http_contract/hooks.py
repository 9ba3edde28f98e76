"""Schemathesis' checks, less what the Wire has otherwise.

Six built-in checks are run through these; all others as they are. The exceptions, and why:

- 5xx: 500 with ``engine_…`` of a test and a schema, since the Wire tells the failure of a caller's
  source so (spec rest-api 6.5, 8.7, 8.8). Not ``engine_internal``, which is a fault of ours.
- Good requests that are refused: by what is stored or reachable (``OF_STATE``; other 409, and 404
  and 429, are let through by the built-in check itself); two good dates in the wrong order (5.4,
  rule 4); filters on what is not asked for (9.2, step 6); ``5432.0``, which a JSON schema takes for
  an integer (5.1); more names than the request's own lowered limits (design 6); text that is no
  PEM (7.4); tenants, of which there are none (spec configuration 7, step 1); changes that do not
  fit the stored type (7.6, step 4).
- Bad requests that are served: a query value that is empty counts as absent, of several the last
  counts, and a sort order may be in any case (5.4). All other values of such a request must be
  good.
- Other methods on ``/unassigned`` and the like reach ``{id}`` (1.1, route precedence).
- A job that was made has no result until a worker has made it (``FET-1024``).
- ``schemathesis.toml``: the statuses of bad requests (a 5xx is none of them), and no NUL.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import schemathesis
from jsonschema import (  # type: ignore[import-untyped] # it has no stubs
    Draft202012Validator,
    FormatChecker,
)
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    ensure_resource_availability,
    negative_data_rejection,
    positive_data_acceptance,
    unsupported_method,
)

REPLACED: Final = (
    "not_a_server_error",
    "positive_data_acceptance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ensure_resource_availability",
)

AnyCase = Case[Any]

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

OF_STATE: Final = frozenset(
    {
        "FET-1014",  # the connection belongs to no product (spec rest-api 9.2, step 9)
        "FET-1016",  # it belongs to another one (the same)
        "FET-1020",  # a data source is not configured (9.2, step 8)
        "FET-1040",  # it cannot be reached (9.2, step 10)
        "FET-1060",  # what is asked for is not there (8.9)
        "FET-1062",  # none of the data sources is configured (8.9)
    }
)
"""Refusals of requests that would be good at another time."""
_PEM: Final = frozenset({"ssl.ca", "ssl.cert", "ssl.key"})
PRODUCT: Final = "acme-reports"
_OF_THE_TYPE: Final = frozenset(
    {"ssl.mode", "ssl.ca", "username", "host", "port", "password_encrypted", "metadata.serviceName"}
)
_BESIDE_IDS: Final = frozenset({"/unassigned", "/validate-schema", "/validate"})


@schemathesis.hook
def map_path_parameters(context: HookContext, parameters: dict[str, Any]) -> dict[str, Any]:
    """Half of the good ids are those of a connection and a job that are there."""
    operation = context.operation
    text = str(parameters.get("id", "")) if parameters else ""
    if operation is None or not _UUID.fullmatch(text) or int(text[0], 16) % 2:
        return parameters
    kind = "job" if operation.path.startswith("/v1/fetcher") else "connection"
    if operation.method in ("patch", "delete"):
        # what is changed and deleted is another one, so that the first can be read to the end
        kind = f"spare_{kind}"
    known = os.environ.get(f"FETCHER_CONTRACT_{kind.upper()}_ID")
    return {**parameters, "id": known} if known else parameters


@schemathesis.hook
def map_body(context: HookContext, body: Any) -> Any:
    """Half of the good questions for data are about a source that is there: names that are made up
    never get past the look for their connection."""
    if context.operation is None or len(repr(body)) % 2 or not isinstance(body, dict):
        return body
    if context.operation.path.endswith("/validate-schema"):
        return _about_what_is_there(body)
    data = body.get("dataRequest")
    if not isinstance(data, dict) or not isinstance(body.get("metadata"), dict):
        return body
    if data.get("filters"):
        return body
    asked = {**body, "dataRequest": _about_what_is_there(data)}
    if asked["dataRequest"] is not data and _is_name(body["metadata"].get("source")):
        # many times over without anything else, so that it is also a repeat
        noted = {} if len(repr(body)) % 4 else body["metadata"]
        asked["metadata"] = {**noted, "source": PRODUCT}
    return asked


def _about_what_is_there(asked: dict[str, Any]) -> dict[str, Any]:
    """The same with other names, where it is well-formed: what is wrong in it stays wrong."""
    mapped = asked.get("mappedFields")
    if not isinstance(mapped, dict) or not 0 < len(mapped) <= 10:
        return asked
    for source, tables in mapped.items():
        if not _is_name(source) or not isinstance(tables, dict) or not 0 < len(tables) <= 20:
            return asked
        for table, fields in tables.items():
            if not _is_name(table) or not isinstance(fields, list) or not 0 < len(fields) <= 50:
                return asked
            if not all(_is_name(field) for field in fields):
                return asked
    return {**asked, "mappedFields": {"sales_db": {"orders": ["id", "total"]}}}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= 100


@schemathesis.check
def no_error_of_ours(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    """That a data source failed is told as 500 by two operations (spec rest-api 6.5, 8.7, 8.8)."""
    code = _told(response, "errorCode")
    is_source_s = code.startswith("engine_") and code != "engine_internal"
    if is_source_s and case.operation.path.endswith(("/{id}/test", "/{id}/schema")):
        return None
    return not_a_server_error(ctx, response, case)


@schemathesis.check
def good_requests_are_served(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    if _is_refused_rightly(response, case):
        return None
    return positive_data_acceptance(ctx, response, case)


def _is_refused_rightly(response: Response, case: AnyCase) -> bool:
    body = _body(response)
    code, message = _told(response, "errorCode"), _told(response, "message")
    return (
        code in OF_STATE
        # Two dates, each of them good, in the wrong order (5.4, rule 4).
        or code == "FET-0409"
        # Filters name what mappedFields name (9.2, step 6).
        or _told(response, "title") == "Invalid Filter References"
        # 5432.0 is no integer, which a JSON schema would take for one (5.1).
        or (message.endswith("Input should be a valid integer") and _has_whole_float(case.body))
        # A request may lower the limits that it is held to (design 6).
        or ("options" in str(case.body) and " names more than " in message)
        # PEM text is no regular language (7.4).
        or (code == "FET-0001" and bool(_PEM.intersection(body.get("fields", ()))))
        # There are no tenants, whatever the id (spec configuration 7, step 1).
        or case.operation.path in {"/readyz/tenant", "/readyz/tenant/{id}"}
        # A change is judged on the whole record (7.6, step 4): these depend on the type it has.
        or (case.method == "PATCH" and _OF_THE_TYPE.issuperset(body.get("fields") or {""}))
    )


@schemathesis.check
def bad_requests_are_refused(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    if response.status_code < 300 and _is_good_by_the_wire(case):
        return None
    return negative_data_rejection(ctx, response, case)


def _is_good_by_the_wire(case: AnyCase) -> bool:
    """Of several values the last one counts, an empty one counts as absent, and ``sortOrder`` is
    read in any case of letters (5.4): with that every value is good."""
    sent = case.query or {}
    values = {
        name: (value[-1] if value else "") if isinstance(value, list) else value
        for name, value in sent.items()
    }
    schemas = {each.name: each.definition.get("schema", {}) for each in case.operation.query}
    is_other = values != sent
    for name, value in values.items():
        text = str(value)
        if value in ("", None) or (name == "sortOrder" and text.lower() in ("asc", "desc")):
            is_other = True
        elif not _is_good(text, schemas.get(name, {})):
            return False
    return is_other


def _is_good(text: str, schema: Mapping[str, Any]) -> bool:
    value = int(text) if schema.get("type") == "integer" and _INTEGER.fullmatch(text) else text
    return bool(Draft202012Validator(schema, format_checker=FormatChecker()).is_valid(value))


def _has_whole_float(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_has_whole_float(each) for each in value.values())
    if isinstance(value, list):
        return any(_has_whole_float(each) for each in value)
    return isinstance(value, float) and value.is_integer()


@schemathesis.check
def other_methods_are_refused(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    return None if _is_beside_ids(case) else unsupported_method(ctx, response, case)


@schemathesis.check
def allowed_methods_are_told(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    return None if _is_beside_ids(case) else allow_header_conformance(ctx, response, case)


@schemathesis.check
def what_was_made_is_there(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    """A job is there at once; its result is made later, by a worker, or never (``FET-1024``)."""
    if case.operation.path.endswith(("/result", "/preview")) and _told(response, "errorCode") == (
        "FET-1024"
    ):
        return None
    return ensure_resource_availability(ctx, response, case)


def _is_beside_ids(case: AnyCase) -> bool:
    """Other methods on these paths reach ``{id}`` (spec rest-api 1.1, route precedence)."""
    return any(case.operation.path.endswith(name) for name in _BESIDE_IDS)


def _body(response: Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _told(response: Response, member: str) -> str:
    return str(_body(response).get(member, ""))
