"""From a request's bytes to a model (spec rest-api 5.1)."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

import brotli
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError
from quart import Request
from werkzeug.exceptions import RequestEntityTooLarge

from fetcher.api.asgi import tenant_id_of
from fetcher.domain.errors import FetcherError
from fetcher.domain.json_text import JsonTextError, ObjectWithRepeats, parse
from fetcher.domain.json_values import JsonValue
from fetcher.domain.member_paths import member
from fetcher.queries.turns import Turns

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
INLINE_BYTES = 64 * 1024
"""Larger bodies go to a thread."""

GIVEN_TWICE = "given_twice"
"""The type of a pydantic error whose message is the member's name."""
UNDECLARED = "undeclared"
"""The type of a pydantic error whose message goes on where the object's own path ends."""
_UNDECODABLE = "the body cannot be decoded as its Content-Encoding says"

_HERE: Final = "here"

_NO_OBJECT: Final = frozenset({"dict_type", "model_type", "model_attributes_type"})
_OBJECT: Final = "Input should be a valid object"
"""What is a dictionary to pydantic is an object to who wrote the JSON."""

_DEEP: frozenset[type[object]] = frozenset({dict, list, ObjectWithRepeats})

_decoders = Turns(2)


class Part(BaseModel):
    """A JSON object of a request.

    Declared names match in any case, an exact match wins, and of several the last one counts;
    ``null`` is the same as absent. Types are strict: no text is a number, no ``5432.0`` an integer.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, alias_generator=to_camel)

    single_below: ClassVar[frozenset[str]] = frozenset()
    """Members below which no member may be given twice: which one counts would be a guess."""

    @model_validator(mode="before")
    @classmethod
    def _fold(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given = cls.by_declared_name(value).items()
        return {name: below for name, below in given if below is not None}

    @classmethod
    def by_declared_name(cls, value: Mapping[str, object]) -> dict[str, object]:
        """The members by their declared names, nulls too; those that nobody declared as sent."""
        exact = {str(info.validation_alias or n) for n, info in cls.model_fields.items()}
        names: dict[str, str] = {name.lower(): name for name in exact}
        folded: dict[str, object] = {}
        for key, below in value.items():
            name = str(key if key in exact else names.get(str(key).lower(), key))
            if key in exact or name not in exact or name not in value:
                folded[name] = below
        return folded


class StrictPart(Part):
    """An object below ``dataRequest``: a member that is not declared, or is given in two cases of
    letters, is an error (design 7)."""

    # what is undeclared is refused below, in words; this says so in the API document
    model_config = ConfigDict(extra="forbid")

    @classmethod
    def by_declared_name(cls, value: Mapping[str, object]) -> dict[str, object]:
        folded = super().by_declared_name(value)
        declared = {str(info.validation_alias or name) for name, info in cls.model_fields.items()}
        for name, below in folded.items():
            if name not in declared and below is not None:
                beyond = member(_HERE, name).removeprefix(_HERE)
                told = {"beyond": beyond, "known": ", ".join(sorted(declared))}
                raise PydanticCustomError(UNDECLARED, "{beyond} is not known, only {known}", told)
        if len(folded) == len(value):
            return folded
        spelt = Counter(str(key).lower() for key in value)
        twice = next(name for name in sorted(declared) if spelt[name.lower()] > 1)
        raise PydanticCustomError(GIVEN_TWICE, "{name}", {"name": twice})


M = TypeVar("M", bound=Part)
T = TypeVar("T")


async def read_payload(request: Request, model: type[M], then: Callable[[M], T]) -> T:
    """What ``then`` makes of the body as a model; it must be pure, and may refuse.

    Large bodies are decoded and judged in a thread: 4 MiB of filters take a second, in which no
    other request, and no lease, would be served.
    Raise ``FET-0001`` ``Invalid payload`` for what is no JSON of the right shape, ``FET-0401`` for
    an undeclared member of a :class:`StrictPart`, and 413 where the body is too large when decoded.
    """
    if not (request.mimetype or "").lower().endswith("json"):
        raise _invalid("the Content-Type must be JSON")
    encodings = _content_encodings(request.headers.get("Content-Encoding", ""))
    body = await request.get_data(False, False, False)
    if len(body) <= INLINE_BYTES and not encodings:
        return then(decode(body, encodings, model))
    return await _decoders.in_thread(
        lambda: then(decode(body, encodings, model)), tenant_id_of(request.scope)
    )


def decode(body: bytes, encodings: Sequence[str], model: type[M]) -> M:
    """Pure; the errors are those of :func:`read_payload`. ``encodings`` in the order in which they
    were applied."""
    for encoding in reversed(encodings):
        body = _inflated(body, encoding)
    value: JsonValue = None
    malformed = ""
    try:
        value = parse(body, max_depth=MAX_DEPTH, notes_repeats=bool(model.single_below))
    except JsonTextError as error:
        malformed = str(error)
    if malformed:
        raise _invalid(malformed)
    repeated = _repeated_below(model, value)
    if repeated is not None:
        raise _given_twice(repeated)
    problem: Sequence[ErrorDetails] = ()
    try:
        return model.model_validate({} if value is None else value)
    except ValidationError as error:
        # Without the input: it may hold a secret.
        problem = error.errors(include_url=False, include_context=False, include_input=False)
    raise _wrong_shape(problem)


def _repeated_below(model: type[Part], value: JsonValue) -> str | None:
    """The path of a member that is given twice where that is an error."""
    if not model.single_below or not isinstance(value, dict):
        return None
    for name, below in model.by_declared_name(value).items():
        if name in model.single_below:
            return _repeated(below, name)
    return None


def _repeated(value: object, path: str) -> str | None:
    """No deeper than what :func:`parse` lets in."""
    below: Iterable[tuple[str, object]] = ()
    if isinstance(value, ObjectWithRepeats):
        return member(path, value.repeated)
    if isinstance(value, dict):
        below = ((member(path, key), item) for key, item in value.items() if type(item) in _DEEP)
    elif isinstance(value, list):
        below = ((f"{path}[{n}]", item) for n, item in enumerate(value) if type(item) in _DEEP)
    return next((found for at, item in below if (found := _repeated(item, at))), None)


def _content_encodings(header: str) -> list[str]:
    names = [name.strip().lower() for name in header.split(",")]
    return [name for name in names if name and name != "identity"]


def _inflated(body: bytes, encoding: str) -> bytes:
    """At most 4 MiB come out, however much was packed into the body."""
    if encoding == "br":
        return _unbrotlied(body)
    window_bits = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}.get(encoding, ())
    for bits in window_bits:
        inflater = zlib.decompressobj(bits)
        try:
            inflated = inflater.decompress(body, MAX_BODY_BYTES + 1)
        except zlib.error:
            continue
        if len(inflated) > MAX_BODY_BYTES:
            raise RequestEntityTooLarge
        if inflater.eof and not inflater.unused_data:
            return inflated
    raise _invalid(_UNDECODABLE)


def _unbrotlied(body: bytes) -> bytes:
    decompressor = brotli.Decompressor()
    try:
        inflated: bytes = decompressor.process(body, output_buffer_limit=MAX_BODY_BYTES + 1)
        is_whole = decompressor.is_finished()
    except brotli.error:
        inflated, is_whole = b"", False
    if len(inflated) > MAX_BODY_BYTES:
        raise RequestEntityTooLarge
    if not is_whole:
        raise _invalid(_UNDECODABLE)
    return inflated


def _wrong_shape(problems: Sequence[ErrorDetails]) -> FetcherError:
    for problem in problems:
        if problem["type"] == GIVEN_TWICE:
            return _given_twice(member(_path(problem["loc"]), problem["msg"]))
    wrong = [problem for problem in problems if problem["type"] != UNDECLARED]
    if wrong:
        message = _OBJECT if wrong[0]["type"] in _NO_OBJECT else wrong[0]["msg"]
        return _invalid(f"{_path(wrong[0]['loc'])}: {message}")
    undeclared = problems[0]
    message = _path(undeclared["loc"]) + undeclared["msg"]
    return FetcherError("FET-0401", "Invalid Data Request", message)


def _given_twice(path: str) -> FetcherError:
    return FetcherError("FET-0401", "Invalid Data Request", f"{path} is given twice")


def _path(location: Sequence[int | str]) -> str:
    path = ""
    for step in location:
        path = f"{path}[{step}]" if isinstance(step, int) else member(path, step)
    return path or "the body"


def _invalid(message: str) -> FetcherError:
    return FetcherError("FET-0001", "Invalid payload", f"unable to parse request body: {message}")
