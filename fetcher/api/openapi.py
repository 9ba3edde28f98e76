"""The API document, OpenAPI 3.1, made from the routes and their models."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fetcher.api.examples import EXAMPLES, ID
from fetcher.api.models.jobs import LimitsRequest
from fetcher.api.models.system import ProblemBody, RelayedBody
from fetcher.api.openapi_answers import Schema, Schemas, responses_of
from fetcher.api.routing import JSON, Route
from fetcher.api.services import DocumentFacts
from fetcher.domain.jobs import LIMIT_NAMES
from fetcher_engine import Limits

_REF = "#/components/schemas/{model}"
_PATH_PARAMETER = re.compile(r"\{([a-z]+)\}")

SECURITY_SCHEME = "bearer"


def openapi_document(
    routes: Sequence[Route],
    facts: DocumentFacts,
    *,
    ceilings: Limits,
    asks_for_token: bool,
    relays: bool = False,
    has_tenants: bool = False,
) -> dict[str, object]:
    """Every route, its parameters, bodies and answers. ``ceilings``: what a request may lower.
    Without ``asks_for_token`` a token may be sent, and is not looked at; ``relays``: refusals may
    be in the authorization service's words; with ``has_tenants`` the token names one."""
    most = tuple(getattr(ceilings, limit) for limit in LIMIT_NAMES.values())
    references, definitions = _schemas(_models(routes), most)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route,
            references,
            asks_for_token=asks_for_token,
            relays=relays,
            has_tenants=has_tenants,
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": facts.title, "version": facts.version}
        | ({"description": facts.description} if facts.description else {}),
        "servers": [{"url": facts.server}],
        "tags": [{"name": name} for name in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": _SECURITY_SCHEMES},
    }


def _models(routes: Sequence[Route]) -> frozenset[type[BaseModel]]:
    models: set[type[BaseModel]] = {ProblemBody, RelayedBody}
    for route in routes:
        models.update(s.model for s in route.successes.values() if s.model is not None)
        if route.request is not None:
            models.add(route.request)
    return frozenset(models)


@lru_cache(maxsize=4)
def _schemas(models: frozenset[type[BaseModel]], most: Sequence[int]) -> tuple[Schemas, Schema]:
    """Half of what a document costs, and the same for all of a process: nobody changes it.
    ``most`` of each of LIMIT_NAMES."""
    # In "validation" mode a member with a default is optional, which is true of answers as well.
    by_model, schemas = models_json_schema(
        [(model, "validation") for model in sorted(models, key=_name)],
        by_alias=True,
        ref_template=_REF,
    )
    references: dict[type[BaseModel], Schema] = {m: by_model[(m, "validation")] for m in models}
    definitions = schemas.get("$defs", {})
    for definition in definitions.values():
        for told in definition.get("properties", {}).values():
            # To leave out is not to send null, which some schemas do not allow.
            if told.get("default", ...) is None:
                del told["default"]
    _tell_ceilings(definitions, dict(zip(LIMIT_NAMES, most, strict=True)))
    return references, definitions


def _tell_ceilings(definitions: dict[str, Any], ceilings: Mapping[str, int]) -> None:
    told = definitions.get(LimitsRequest.__name__, {}).get("properties", {})
    for name, limit in told.items():
        for alternative in limit["anyOf"]:
            if alternative["type"] != "null":
                alternative["maximum"] = ceilings[name]


def _name(model: type[BaseModel]) -> str:
    return model.__name__


_SECURITY_SCHEMES = {
    SECURITY_SCHEME: {
        "type": "http",
        "scheme": "bearer",
        "description": "Also taken without the word Bearer before it",
    }
}


def _operation(
    route: Route, schemas: Schemas, *, asks_for_token: bool, relays: bool, has_tenants: bool
) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "responses": responses_of(
            route, schemas, asks_for_token=asks_for_token, relays=relays, has_tenants=has_tenants
        ),
    }
    if route.permission is not None:
        operation["security"] = [
            {SECURITY_SCHEME: []},
            *([] if asks_for_token or has_tenants else [{}]),
        ]
    parameters = _parameters(route)
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {
                JSON: {"schema": schemas[route.request], "example": EXAMPLES[route.request]}
            },
        }
    return operation


def _parameters(route: Route) -> list[dict[str, object]]:
    described = {each.name for each in route.parameters if each.place == "path"}
    in_path: list[dict[str, object]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "A UUID; also in braces, after `urn:uuid:`, or without dashes",
            "schema": {"type": "string", "format": "uuid"},
            "example": ID,
        }
        for name in _PATH_PARAMETER.findall(route.path)
        if name not in described
    ]
    return in_path + [
        {
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.required,
            "description": parameter.description,
            "schema": dict(parameter.schema),
        }
        | ({} if parameter.example is None else {"example": parameter.example})
        for parameter in route.parameters
    ]
