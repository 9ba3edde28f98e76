"""Whatever hangs, an operator's question is answered in time."""

from dataclasses import fields, replace
from typing import Any, Never

import trio
from trio.testing import MockClock

from fetcher.api.application import manager_routes
from fetcher.api.operations_looks import LOOK_SECONDS, ROOT
from fetcher.commands.audit import AUDIT_SECONDS
from fetcher.commands.operate_dead_letters import LIST_SECONDS, REDRIVE_SECONDS
from tests.unit.api.harness import START, Api, a_job, an_api
from tests.unit.api.operations_room import LetterBox, a_letter

OWN_STATE = {"actors"}
"""Told from this process's memory: nothing hangs."""


class Hung:
    """A port that never answers, whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        return self._hung

    async def _hung(self, *_: object, **__: object) -> Never:
        await trio.sleep_forever()


class HungQueue(Hung):
    def open(self) -> Any:
        return self

    async def __aenter__(self) -> Never:
        await trio.sleep_forever()

    async def __aexit__(self, *_: object) -> None:
        """Never entered."""


def an_api_whose_parts_hang() -> Api:
    hung: Any = Hung()
    healthy = an_api()
    operations = healthy.services.operations
    ports = {"queues", "statistics", "breakers", "events", "dispatch"}
    assert ports < {each.name for each in fields(operations)}
    letters = operations.letters
    letters._queue = HungQueue()
    return an_api(
        operations=replace(operations, letters=letters, **dict.fromkeys(ports, hung)),
        system=replace(healthy.services.system, readiness=hung.readiness),
        jobs=hung,
        audit=replace(healthy.services.audit, trail=hung, unrecorded=lambda *_: None),
    )


async def test_question_to_what_hangs_is_503_in_time(autojump_clock: MockClock) -> None:
    api = an_api_whose_parts_hang()
    routes = [each for each in manager_routes(api.services) if each.path.startswith(ROOT)]
    assert len(routes) >= 10
    for route in routes:
        began = trio.current_time()
        body: object = {} if route.method == "POST" else None
        with trio.fail_after(10 * REDRIVE_SECONDS):
            answered = await api.call(route.method, route.path, body)
        waited = trio.current_time() - began
        if route.path.removeprefix(f"{ROOT}/") in OWN_STATE:
            assert answered.status == 200
            continue
        assert (answered.status, answered.json["code"]) == (503, "FET-0003"), route.path
        # What is done has its entry, which waits for the records in turn.
        most = REDRIVE_SECONDS + AUDIT_SECONDS if route.method == "POST" else LOOK_SECONDS
        assert 0 < waited <= most


async def test_records_that_hang_do_not_hold_a_redrive(autojump_clock: MockClock) -> None:
    """What was told until then holds."""
    hung: Any = Hung()
    box = LetterBox([a_letter(a_job(), at=START)])
    api = an_api(box=box)
    api.services.operations.letters._held_back = hung
    began = trio.current_time()
    answered = await api.call("POST", f"{ROOT}/dead-letters/redrive", {})
    assert answered.json == {"dispatched": 0, "stoppedBy": "deadline", "letters": []}
    assert trio.current_time() - began <= REDRIVE_SECONDS
    assert box.open_windows == 0


def test_walk_over_dead_letters_ends_before_its_answer_is_given_up() -> None:
    assert LIST_SECONDS < LOOK_SECONDS
