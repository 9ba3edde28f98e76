"""The API document, OpenAPI 3.1, made from the routes and their models."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fetcher.api.models.system import ProblemBody
from fetcher.api.routing import JSON, Route, Success
from fetcher.api.services import DocumentFacts

_REF = "#/components/schemas/{model}"
_PATH_PARAMETER = re.compile(r"\{([a-z]+)\}")

ERROR_DESCRIPTION = "What went wrong; programs decide by `errorCode`"


SECURITY_SCHEME = "bearer"
REFUSALS: Mapping[int, str] = MappingProxyType(
    {
        401: "No token, or none that is accepted",
        403: "The token does not allow this operation",
        503: "Nobody could be asked about the token, or a part of the service is away",
    }
)


def openapi_document(
    routes: Sequence[Route], facts: DocumentFacts, *, asks_for_token: bool
) -> dict[str, object]:
    """Every route, its parameters, bodies and answers. Without ``asks_for_token`` a token may be
    sent, and is not looked at."""
    references, definitions = _schemas(routes)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, references, asks_for_token=asks_for_token
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


Schema = Mapping[str, object]


def _schemas(routes: Sequence[Route]) -> tuple[dict[type[BaseModel], Schema], Schema]:
    models: set[type[BaseModel]] = {ProblemBody}
    for route in routes:
        models.update(s.model for s in route.successes.values() if s.model is not None)
        if route.request is not None:
            models.add(route.request)
    # In "validation" mode a member with a default is optional, which is true of answers as well.
    by_model, schemas = models_json_schema(
        [(model, "validation") for model in sorted(models, key=_name)],
        by_alias=True,
        ref_template=_REF,
    )
    references: dict[type[BaseModel], Schema] = {m: by_model[(m, "validation")] for m in models}
    return references, schemas.get("$defs", {})


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
    route: Route, schemas: Mapping[type[BaseModel], Schema], *, asks_for_token: bool
) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "responses": {
            **{str(status): _success(s, schemas) for status, s in route.successes.items()},
            **(_refusals(schemas) if asks_for_token and route.permission else {}),
            "default": {
                "description": ERROR_DESCRIPTION,
                "content": {JSON: {"schema": schemas[ProblemBody]}},
            },
        },
    }
    if route.permission is not None:
        operation["security"] = [{SECURITY_SCHEME: []}, *([] if asks_for_token else [{}])]
    parameters = _parameters(route)
    if parameters:
        operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": schemas[route.request]}},
        }
    return operation


def _refusals(schemas: Mapping[type[BaseModel], Schema]) -> dict[str, object]:
    """Plain text, or JSON for those who ask for it by name."""
    content = {JSON: {"schema": schemas[ProblemBody]}, "text/plain": {"schema": {"type": "string"}}}
    return {
        str(status): {"description": description, "content": content}
        for status, description in REFUSALS.items()
    }


def _success(success: Success, schemas: Mapping[type[BaseModel], Schema]) -> dict[str, object]:
    schema: Schema = schemas[success.model] if success.model is not None else {}
    if success.media_type != JSON:
        schema = {"type": "string"}
    described: dict[str, object] = {"description": success.description}
    if success.media_type is not None:
        described["content"] = {success.media_type: {"schema": schema}}
    if success.headers:
        described["headers"] = {name: {"schema": {"type": "string"}} for name in success.headers}
    return described


def _parameters(route: Route) -> list[dict[str, object]]:
    in_path: list[dict[str, object]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "A UUID",
            "schema": {"type": "string", "format": "uuid"},
        }
        for name in _PATH_PARAMETER.findall(route.path)
    ]
    return in_path + [
        {
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.required,
            "description": parameter.description,
            "schema": dict(parameter.schema),
        }
        for parameter in route.parameters
    ]
