"""Where an answer leads is where its id is taken: every link of the served document, followed."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from fetcher.domain.jobs import JobStatus
from tests.unit.api.described import document_bytes, operations
from tests.unit.api.harness import (
    JOBS,
    PRODUCT,
    Answered,
    Api,
    a_body,
    a_connection,
    a_request,
    end,
    stored,
)
from tests.unit.api.results import an_api_with_store

BODIES: Final = {"patch_connection": {"port": 5433}}
OF_THE_STATE: Final = {
    "assign_connection": (409, "FET-1015"),
    "rerun_job": (409, "FET-1023"),
    "get_job_result": (404, "FET-1024"),
    "preview_job_result": (404, "FET-1024"),
    "delete_job_result": (409, "FET-1021"),
}
"""A new connection has a product, and a new job neither an end nor a result; all else is done."""


async def a_new_connection(api: Api) -> Answered:
    return await api.create(a_body())


async def a_new_job(api: Api) -> Answered:
    await api.records.connections.insert(a_connection())
    return await api.ask(a_request())


async def the_same_job(api: Api) -> Answered:
    await a_new_job(api)
    return await api.ask(a_request())


async def a_job_again(api: Api) -> Answered:
    first = await stored(api, await a_new_job(api))
    await end(api, first, JobStatus.FAILED)
    return await api.call("POST", f"{JOBS}/{first.id}/rerun")


MADE_BY: Final[dict[tuple[str, int], Callable[[Api], Awaitable[Answered]]]] = {
    ("create_connection", 201): a_new_connection,
    ("create_job", 202): a_new_job,
    ("create_job", 200): the_same_job,
    ("rerun_job", 202): a_job_again,
}


async def links_of(api: Api) -> dict[tuple[str, int], dict[str, Any]]:
    return {
        (name, int(status)): answer["links"]
        for name, operation in operations(await document_bytes(api.app)).items()
        for status, answer in operation["responses"].items()
        if "links" in answer
    }


async def test_links_lead_from_every_answer_that_gives_a_new_id() -> None:
    links = await links_of(an_api_with_store())
    assert links.keys() == MADE_BY.keys()
    targets = {
        name: {link["operationId"] for link in told.values()} for name, told in links.items()
    }
    of_a_connection = targets["create_connection", 201]
    assert {"get_connection", "patch_connection", "delete_connection"} <= of_a_connection
    for name in targets.keys() - {("create_connection", 201)}:
        assert {"get_job", "cancel_job", "get_job_result"} <= targets[name]


@pytest.mark.parametrize("source", MADE_BY, ids=lambda source: f"{source[0]} {source[1]}")
async def test_every_link_reaches_what_was_made(source: tuple[str, int]) -> None:
    for name, link in (await links_of(an_api_with_store()))[source].items():
        api = an_api_with_store()
        made = await MADE_BY[source](api)
        assert made.status == source[1]
        [(parameter, expression)] = link["parameters"].items()
        body, _, pointer = expression.partition("#/")
        assert (parameter, body) == ("id", "$response.body")
        api_paths = json.loads(await document_bytes(api.app))["paths"]
        [(path, method)] = [
            (path, method)
            for path, methods in api_paths.items()
            for method, told in methods.items()
            if told["operationId"] == link["operationId"]
        ]
        api.engines.source("sales_db")
        answered = await api.call(
            method.upper(),
            path.format(id=made.json[pointer]),
            BODIES.get(name),
            headers=PRODUCT,
        )
        if name in OF_THE_STATE:
            assert answered.problem[:2] == OF_THE_STATE[name], name
        else:
            assert answered.status in (200, 204), (name, answered.raw)
