"""Schemathesis' checks, less what the Wire has otherwise: each exception names its rule.

Five built-in checks are run through these; all others as they are.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
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
)

AnyCase = Case[Any]

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
_BESIDE_IDS: Final = frozenset({"/unassigned", "/validate-schema", "/validate"})


@schemathesis.hook
def map_path_parameters(context: HookContext, parameters: dict[str, Any]) -> dict[str, Any]:
    """Half of the good ids are those of a connection and a job that are there."""
    operation = context.operation
    text = str(parameters.get("id", "")) if parameters else ""
    if operation is None or not _UUID.fullmatch(text) or int(text[0], 16) % 2:
        return parameters
    kind = "job" if operation.path.startswith("/v1/fetcher") else "connection"
    known = os.environ.get(f"FETCHER_CONTRACT_{kind.upper()}_ID")
    return {**parameters, "id": known} if known else parameters


@schemathesis.check
def no_error_of_ours(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    """That a data source failed is told as 500 by two operations (spec rest-api 6.5, 8.7, 8.8)."""
    is_source_s = _told(response, "errorCode").startswith("engine_")
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
        # Request line and headers have at most 4096 bytes together (2.2).
        or response.status_code == 431
        # Two dates, each of them good, in the wrong order (5.4, rule 4).
        or code == "FET-0409"
        # Filters name what mappedFields name (9.2, step 6).
        or _told(response, "title") == "Invalid Filter References"
        # 5432.0 is no integer, which a JSON schema would take for one (5.1).
        or message.endswith("Input should be a valid integer")
        # The ceilings are the operator's settings, and a request may lower them (design 6).
        or message.startswith("dataRequest.options.limits.")
        or ("options" in str(case.body) and " names more than " in message)
        # PEM text is no regular language (7.4).
        or (code == "FET-0001" and bool(_PEM.intersection(body.get("fields", ()))))
        # A change is judged on the whole record (7.6, step 4).
        or (case.method == "PATCH" and body.get("entityType") == "connection")
    )


@schemathesis.check
def bad_requests_are_refused(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    if response.status_code < 300 and _is_good_by_the_wire(case):
        return None
    return negative_data_rejection(ctx, response, case)


def _is_good_by_the_wire(case: AnyCase) -> bool:
    for value in (case.query or {}).values():
        if isinstance(value, list) or value in ("", None):
            # An empty value counts as absent; of several the last one counts (5.4).
            return True
        if isinstance(value, str) and value.lower() in ("asc", "desc"):
            # In any case of letters (5.4).
            return True
    # Empty, it does not filter (5.3).
    headers: Mapping[str, str] = case.headers or {}
    return headers.get("X-Product-Name") == "" and case.method == "GET"


@schemathesis.check
def other_methods_are_refused(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    return None if _is_beside_ids(case) else unsupported_method(ctx, response, case)


@schemathesis.check
def allowed_methods_are_told(ctx: CheckContext, response: Response, case: AnyCase) -> bool | None:
    return None if _is_beside_ids(case) else allow_header_conformance(ctx, response, case)


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
