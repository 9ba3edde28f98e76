"""Every answer of the application under test is one that its own API document has."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import orjson
from jsonschema import (  # type: ignore[import-untyped] # it has no stubs
    Draft202012Validator,
    FormatChecker,
)
from quart_trio import QuartTrio
from werkzeug.datastructures import Headers
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Map

from fetcher.api.problems import FRAMEWORK_CODES

UNMATCHED = {404: FRAMEWORK_CODES[404], 405: FRAMEWORK_CODES[405]}
"""What answers where no operation is reached; no operation names these."""

Document = Mapping[str, Any]


async def check_described(
    app: QuartTrio, method: str, path: str, status: int, headers: Headers, raw: bytes
) -> None:
    """Raise AssertionError for an answer that the document does not have for its operation."""
    name = _operation(app.url_map, method, path)
    if name is None:
        # A body or a head that is too large is refused before the path is looked at.
        assert status in {*UNMATCHED, 204, 308, 408, 413, 431, 503}, status
        return
    if "openapi" not in app.view_functions:
        return
    document = await document_bytes(app)
    if name not in operations(document):
        return
    assert_answer(document, name, status, headers, raw, has_body=method != "HEAD")


def assert_answer(
    document: bytes, name: str, status: int, headers: Headers, raw: bytes, *, has_body: bool = True
) -> None:
    responses = operations(document)[name]["responses"]
    key = str(status) if str(status) in responses else f"{status // 100}XX"
    assert key in responses, f"{name} answered {status}, which the document does not name: {raw!r}"
    for header, told in responses[key].get("headers", {}).items():
        assert header in headers or not told["required"], f"{name} {status} lacks {header}"
    content = responses[key].get("content", {})
    if not has_body:
        return
    if not content:
        assert not raw
        return
    media_type = headers["Content-Type"].partition(";")[0]
    assert media_type in content, f"{name} {status}: {media_type} is not in the document"
    if media_type == "application/json":
        validator = _validator(document, name, key)
        faults = [error.message for error in validator.iter_errors(json.loads(raw))]
        assert not faults, f"{name} {status}: {faults}: {raw[:500]!r}"


async def document_bytes(app: QuartTrio) -> bytes:
    response = await cast("Any", app.view_functions["openapi"])()
    return cast("bytes", await response.get_data(as_text=False))


@cache
def operations(document: bytes) -> Mapping[str, Any]:
    """By ``operationId``."""
    paths = orjson.loads(document)["paths"]
    return {each["operationId"]: each for methods in paths.values() for each in methods.values()}


@cache
def _validator(document: bytes, name: str, status: str) -> Draft202012Validator:
    schema = operations(document)[name]["responses"][status]["content"]["application/json"][
        "schema"
    ]
    components = {"components": orjson.loads(document)["components"]}
    return Draft202012Validator(schema | components, format_checker=FormatChecker())


def _operation(url_map: Map, method: str, path: str) -> str | None:
    try:
        name, _ = url_map.bind("").match(path.partition("?")[0], method=method)
    except (NotFound, MethodNotAllowed):
        return None
    return cast("str", name)
