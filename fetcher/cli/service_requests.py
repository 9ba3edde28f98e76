"""What commands ask of a running service over its public HTTP API, as any caller does."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

import trio

from fetcher.bootstrap.service_calls import (
    NO_FETCHER,
    ServiceAnswer,
    ServiceCall,
    ServicePlace,
    call_service,
    place_at,
    place_of,
)
from fetcher.cli.exits import EXIT_FAILED, done_all_the_same
from fetcher.cli.printing import complain, print_json_text, say
from fetcher.cli.shared_options import RoleName, settings_for, variables_here
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.json_text import JsonTextError, dumps, parse
from fetcher.domain.json_values import JsonObject, JsonValue
from fetcher.log_secrets import live_secrets
from fetcher.settings import SettingsRefused, secret_in

TOKEN_VARIABLE: Final = "FETCHER_TOKEN"  # noqa: S105 - the variable's name
SILENCE_SECONDS: Final = 60.0
"""A connection's test, and a rerun's, may wait for a database."""
CALL_SECONDS: Final = 120.0
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
MAX_LINE: Final = 200

_ABOUT: Final = frozenset({"code", "title", "message", "errorCode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom a command asks, and how it prints."""

    command: str
    place: ServicePlace
    as_json: bool


@dataclass(frozen=True, slots=True)
class Told:
    """A good answer; ``document`` is empty where there is no body."""

    status: int
    document: JsonObject
    text: str = ""
    """As it came."""


def target_of(command: str, *, url: str | None, role: RoleName | None, as_json: bool) -> Target:
    """``url``, or where a service with the settings of this machine listens; with the token of
    FETCHER_TOKEN, else FETCHER_ACCESS_TOKEN of the settings.

    Where both are given no settings are read: whoever asks from elsewhere has none. Raise
    SettingsRefused.
    """
    token = secret_in(variables_here(), TOKEN_VARIABLE)
    live_secrets.hold([token] if token else [])
    if not all("!" <= each <= "~" for each in token):
        raise SettingsRefused([f"{TOKEN_VARIABLE}: must be printable ASCII without spaces"])
    try:
        if url is not None and token:
            place = place_at(url, token=token)
        else:
            place = place_of(settings_for(role), url)
    except ValueError as wrong:
        raise SettingsRefused([f"--url: {wrong}"]) from None
    if token:
        place = ServicePlace(scheme=place.scheme, host=place.host, port=place.port, token=token)
    return Target(command=command, place=place, as_json=as_json)


def get(
    path: str, options: Mapping[str, object] | None = None, *, product: str = ""
) -> ServiceCall:
    """``options`` that are None are not sent. Raise SettingsRefused for a product that no header
    can hold."""
    return ServiceCall(path=path, query=_query(options or {}), headers=_of_product(product))


def item_path(root: str, item_id: str, operation: str = "") -> str:
    """Raise SettingsRefused for what is no id: it would name something else than an item."""
    try:
        found = UUID(item_id)
    except ValueError:
        raise SettingsRefused([f"{item_id}: not an id"]) from None
    return f"{root}/{found}/{operation}" if operation else f"{root}/{found}"


def ask(target: Target, call: ServiceCall, *, has: Collection[str]) -> Told | None:
    """None after its failure was told: in the service's own words where it refused.

    ``has``: members of a good answer. What lacks one comes from somebody else.

    With ``as_json`` a refusal's document is printed as it came beside its words.
    """
    try:
        answer = trio.run(partial(_call, target.place, call))
    except PortUnavailable as failed:
        complain(f"{target.command}: {target.place.url}: {failed}")
        return None
    document = _document(answer)
    is_good = 200 <= answer.status < 300
    if document is None or (is_good and not document.keys() >= set(has)):
        complain(f"{target.command}: {target.place.url}: {_what_else(answer)}")
        return None
    text = answer.body.decode("utf-8", "replace")
    if is_good:
        return Told(answer.status, document, text)
    _print_as_json(target, text)
    _tell_refusal(target, answer.status, document)
    return None


def run_call(
    target: Target, call: ServiceCall, tell: Callable[[Told], None], *, has: Collection[str]
) -> int:
    """One call as a command; ``tell`` words a good answer for a person. The exit code."""
    told = ask(target, call, has=has)
    if told is None:
        return EXIT_FAILED
    _print_as_json(target, told.text)
    if not target.as_json:
        tell(told)
    return 0


def run_change(
    target: Target, call: ServiceCall, word: Callable[[Told], str], *, has: Collection[str] = ()
) -> int:
    """One call that changes something; ``word`` says in a line what was done. The exit code."""
    told = ask(target, call, has=has)
    if told is None:
        return EXIT_FAILED
    done = word(told)
    with done_all_the_same(f"{target.command}: {done}"):
        _print_as_json(target, told.text)
        if not target.as_json:
            say(done)
    return 0


def _print_as_json(target: Target, text: str) -> None:
    """An answer without a body has no document."""
    if target.as_json and text:
        print_json_text(text)


async def _call(place: ServicePlace, call: ServiceCall) -> ServiceAnswer:
    """Raise PortUnavailable."""
    with trio.move_on_after(CALL_SECONDS):
        return await trio.to_thread.run_sync(
            partial(call_service, place, call, seconds=SILENCE_SECONDS, max_bytes=MAX_ANSWER_BYTES),
            abandon_on_cancel=True,
        )
    raise PortUnavailable("the service did not answer in time: timeout")


def _document(answer: ServiceAnswer) -> JsonObject | None:
    """None for what is no object of JSON."""
    if not answer.body:
        return {}
    try:
        document = parse(answer.body)
    except JsonTextError:
        return None
    return document if isinstance(document, dict) else None


def _what_else(answer: ServiceAnswer) -> str:
    """What stands between may refuse with a line of plain text, or with a page."""
    if answer.status < 400:
        return NO_FETCHER
    told = f"the service answered {answer.status}"
    text = answer.body.decode("utf-8", "replace").strip()
    is_line = len(text) <= MAX_LINE and not any(each in text for each in "<\n")
    return f"{told}: {text}" if is_line else told


def _tell_refusal(target: Target, status: int, document: Mapping[str, JsonValue]) -> None:
    words, code = document.get("message"), document.get("errorCode") or document.get("code")
    told = f"{words} ({code})" if words else f"the service answered {status}"
    complain(f"{target.command}: {told}")
    if not target.as_json:
        for name, value in document.items():
            if name not in _ABOUT:
                complain(f"  {name}: {value if isinstance(value, str) else dumps(value)}")


def _query(options: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items() if value is not None}


def _of_product(product: str) -> dict[str, str]:
    if not all(" " <= each <= "~" for each in product):
        raise SettingsRefused(["--product: must be printable ASCII"])
    return {"X-Product-Name": product} if product else {}
