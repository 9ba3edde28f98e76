"""The operators' routes to dead letters: what they tell, what they bound, what they do."""

import pytest
import trio
from trio.testing import MockClock

from fetcher.commands import operate_dead_letters
from fetcher.commands.operate_dead_letters import MOST_LISTED_FROM
from fetcher.domain.audit import AuditQuery
from fetcher.domain.jobs import Job
from tests.unit.api.harness import START, a_job, an_api
from tests.unit.api.operations_room import LetterBox, a_letter, told

LETTERS = "/v1/operations/dead-letters"


def three_letters(job: Job) -> LetterBox:
    """One genuine, one of nobody's job, one that a stranger wrote."""
    stranger = a_letter(a_job(), tag=3, at=START, key=b"x" * 32, reason="x" * 300)
    unknown = a_letter(a_job(), tag=2, at=START, reason="unknown_job")
    return LetterBox([a_letter(job, tag=1, at=START), unknown, stranger])


async def test_dead_letters_are_told_without_their_bodies() -> None:
    job = a_job()
    box = three_letters(job)
    body = await told(an_api(box=box), "dead-letters")
    assert body["total"] == 3
    first, _, last = body["letters"]
    assert first == {
        "position": 1,
        "jobId": str(job.id),
        "genuine": True,
        "reason": "unreadable_job",
        "exchange": "",
        "routingKey": "work",
        "sentAt": "2026-03-14T09:26:53Z",
        "bytes": len(box.letters[0].body),
    }
    assert (last["genuine"], last["reason"]) == (False, "x" * 256)


async def test_dead_letters_are_chosen_by_reason_and_number() -> None:
    api = an_api(box=three_letters(a_job()))
    some = await told(api, "dead-letters?reason=unknown_job")
    assert (some["total"], [each["position"] for each in some["letters"]]) == (3, [2])
    assert len((await told(api, "dead-letters?limit=1"))["letters"]) == 1
    answered = await api.get(f"{LETTERS}?reason={'x' * 257}")
    assert (answered.status, answered.json["code"]) == (400, "FET-0405")


async def test_no_more_letters_are_looked_at_than_are_asked_for() -> None:
    box = three_letters(a_job())
    body = await told(an_api(box=box), "dead-letters?limit=2")
    assert (body["examined"], "stoppedBy" in body, box.looks) == (2, False, 2)


async def test_letters_that_a_look_wears_out_are_counted_only() -> None:
    box = three_letters(a_job())
    box.drops_what_is_looked_at = True
    body = await told(an_api(box=box), "dead-letters?reason=unknown_job")
    assert body == {"total": 3, "examined": 0, "stoppedBy": "delivery_limit", "letters": []}
    assert box.looks == 0


async def test_empty_queue_is_not_asked_whether_its_letters_stand_a_look() -> None:
    body = await told(an_api(box=LetterBox(drops_what_is_looked_at=True)), "dead-letters")
    assert body == {"total": 0, "examined": 0, "letters": []}


async def test_letters_of_one_reason_are_looked_for_among_the_first_thousand() -> None:
    others = [a_letter(a_job(), tag=tag, at=START) for tag in range(MOST_LISTED_FROM)]
    wanted = a_letter(a_job(), tag=MOST_LISTED_FROM, at=START, reason="unknown_job")
    box = LetterBox([*others, wanted])
    body = await told(an_api(box=box), "dead-letters?reason=unknown_job")
    assert body == {
        "total": MOST_LISTED_FROM + 1,
        "examined": MOST_LISTED_FROM,
        "stoppedBy": "examined",
        "letters": [],
    }
    assert box.looks == MOST_LISTED_FROM
    box.letters.pop()
    body = await told(an_api(box=box), "dead-letters?reason=unknown_job")
    assert "stoppedBy" not in body


async def test_walk_that_takes_too_long_tells_what_it_saw(autojump_clock: MockClock) -> None:
    letters = [a_letter(a_job(), tag=tag, at=START) for tag in range(450)]
    box = LetterBox([*letters, a_letter(a_job(), at=START, reason="late")], page_seconds=3.0)
    api = an_api(box=box)
    body = await told(api, "dead-letters?reason=late")
    assert body == {"total": 451, "examined": 200, "stoppedBy": "deadline", "letters": []}
    assert box.open_windows == 0
    box.page_seconds = 12.0
    redriven = await api.call("POST", f"{LETTERS}/redrive", {"limit": 1000})
    assert (redriven.status, redriven.json["stoppedBy"]) == (200, "deadline")
    assert len(redriven.json["letters"]) == 200
    [entry] = (await api.records.audit.list_page(AuditQuery())).items
    assert entry.target == f"{redriven.json['dispatched']} letters"
    assert box.open_windows == 0


async def test_redrive_looks_for_one_reason_among_the_first_ten_thousand(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operate_dead_letters, "MOST_REDRIVEN_FROM", 150)
    box = LetterBox([a_letter(a_job(), tag=tag, at=START) for tag in range(200)])
    answered = await an_api(box=box).call("POST", f"{LETTERS}/redrive", {"reason": "late"})
    assert answered.json == {"dispatched": 0, "stoppedBy": "examined", "letters": []}
    assert box.looks == 150


async def test_letters_that_a_look_wears_out_can_be_redriven(autojump_clock: MockClock) -> None:
    job = a_job(dispatched_at=START)
    box = LetterBox([a_letter(job, at=START)], drops_what_is_looked_at=True)
    api = an_api(box=box)
    await api.records.jobs.insert(job)
    answered = await api.call("POST", f"{LETTERS}/redrive", {})
    assert (answered.json["dispatched"], box.letters) == (1, [])


async def test_redrive_dispatches_what_is_genuine_and_leaves_the_others(
    autojump_clock: MockClock,
) -> None:
    job = a_job(dispatched_at=START)
    box = three_letters(job)
    unknown, stranger = box.letters[1:]
    api = an_api(box=box)
    await api.records.jobs.insert(job)
    answered = await api.call("POST", f"{LETTERS}/redrive", {})
    assert answered.status == 200
    assert answered.json["dispatched"] == 1
    assert [(each["position"], each["result"]) for each in answered.json["letters"]] == [
        (1, "dispatched"),
        (2, "unknown"),
        (3, "unverified"),
    ]
    assert box.letters == [unknown, stranger]
    stored = await api.records.jobs.get(job.id)
    assert stored is not None
    assert (stored.dispatched_at, stored.dispatch_seq) == (None, 1)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"limit": 0}, "FET-0001"),
        ({"limit": 1001}, "FET-0001"),
        ({"reason": ""}, "FET-0001"),
        ({"reason": "x" * 257}, "FET-0001"),
        ({"jobs": ["1"]}, "FET-0401"),
        ([], "FET-0001"),
    ],
)
async def test_redrive_refuses_what_it_does_not_know(body: object, code: str) -> None:
    box = three_letters(a_job())
    answered = await an_api(box=box).call("POST", f"{LETTERS}/redrive", body)
    assert (answered.status, answered.json["code"]) == (400, code)
    assert len(box.letters) == 3


async def test_letters_are_in_one_hand_at_a_time(autojump_clock: MockClock) -> None:
    box = three_letters(a_job())
    api = an_api(box=box)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(api.get, LETTERS)
    assert (box.open_windows, box.most_open) == (0, 1)


async def test_a_window_that_stays_open_is_waited_for_only_so_long(
    autojump_clock: MockClock,
) -> None:
    api = an_api(box=LetterBox([a_letter(a_job(), at=START)]))
    held = trio.Event()

    async def hold() -> None:
        async with api.services.operations.letters._window():
            held.set()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        await held.wait()
        answered = await api.get(LETTERS)
        nursery.cancel_scope.cancel()
    assert (answered.status, answered.json["code"]) == (503, "FET-0003")
    assert answered.headers["Retry-After"] == "5"


async def test_a_queue_that_is_missing_is_told_with_what_makes_it() -> None:
    api = an_api(box=LetterBox(is_declared=False))
    for answered in (await api.get(LETTERS), await api.call("POST", f"{LETTERS}/redrive", {})):
        assert answered.problem == (409, "FET-1028", "Queue Missing")
        assert "fetcher topology declare" in answered.json["message"]
