"""What a service that runs tells of itself over HTTP, for who diagnoses it from outside."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import trio
from pydantic import ValidationError

from fetcher.api.models.connections import Answer
from fetcher.api.models.operations import ActorsAnswer, BreakersAnswer, DependenciesAnswer
from fetcher.bootstrap.service_calls import (
    NO_FETCHER,
    ServiceAbsent,
    ServiceCall,
    ServicePlace,
    call_service,
)
from fetcher.commands.diagnosis import Facts
from fetcher.domain.errors import PortUnavailable

LOOKS: Final[Mapping[str, type[Answer]]] = {
    "actors": ActorsAnswer,
    "dependencies": DependenciesAnswer,
    "breakers": BreakersAnswer,
}
ANSWER_SECONDS: Final = 4.0
MAX_ANSWER_BYTES: Final = 1024 * 1024


async def ask_service(place: ServicePlace, *, must_answer: bool) -> Facts:
    """Its actors, dependencies and breakers; of each answer only what we know of.

    Where nobody listens, and nobody said that somebody must, that is told. Raise PortUnavailable.
    """
    told: dict[str, object] = {"url": place.url, "answers": True}
    try:
        for name, model in LOOKS.items():
            body = await trio.to_thread.run_sync(_get, place, name, abandon_on_cancel=True)
            told[name] = model.model_validate(body).to_json()
    except ServiceAbsent:
        if must_answer:
            raise
        return {"url": place.url, "answers": False}
    except ValidationError:
        pass
    else:
        return told
    raise PortUnavailable(NO_FETCHER)


def _get(place: ServicePlace, name: str) -> object:
    call = ServiceCall(path=f"/v1/operations/{name}")
    answer = call_service(place, call, seconds=ANSWER_SECONDS, max_bytes=MAX_ANSWER_BYTES)
    if answer.status != HTTPStatus.OK:
        raise PortUnavailable(f"the service answered {answer.status}")
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        pass
    raise PortUnavailable(NO_FETCHER)
