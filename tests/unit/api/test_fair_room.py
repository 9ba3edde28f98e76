"""Room that tenants share, as none of them alone may have all of it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.api.fair_room import FairRoom
from fetcher.api.stream_places import StreamPlaces, TooManyStreams
from fetcher.domain.tenants import Tenant


def taken_by(room: FairRoom, tenant_id: str) -> int:
    """As many as it can get."""
    taken = 0
    while room.take(1, tenant_id):
        taken += 1
    return taken


def test_each_gets_half_of_what_the_others_leave() -> None:
    room = FairRoom(256)
    assert [taken_by(room, f"t{number}") for number in range(4)] == [128, 64, 32, 16]


def test_those_that_take_in_turn_get_the_same() -> None:
    room = FairRoom(400)
    taken: Counter[str] = Counter()
    for _ in range(400):
        for tenant in ("a", "b", "c"):
            taken[tenant] += room.take(1, tenant)
    assert taken == {"a": 100, "b": 100, "c": 100}


def test_without_tenants_only_the_total_counts() -> None:
    room = FairRoom(3)
    assert taken_by(room, "") == 3
    room.give_back(2, "")
    assert taken_by(room, "") == 2
    assert room.take(0, "")


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 40), st.booleans()), max_size=100)
)
def test_who_takes_never_holds_more_than_stays_free(
    steps: list[tuple[str, int, bool]],
) -> None:
    room, held = FairRoom(100), Counter[str]()
    for tenant, amount, takes in steps:
        if not takes:
            amount = min(amount, held[tenant])  # noqa: PLW2901 - no more than it has
            room.give_back(amount, tenant)
            held[tenant] -= amount
        elif room.take(amount, tenant):
            held[tenant] += amount
            assert amount == 0 or held[tenant] <= 100 - held.total()
        else:
            assert held[tenant] + amount > 100 - held.total() - amount
    for tenant, amount in held.items():
        room.give_back(amount, tenant)
    assert taken_by(room, "a") == 50


def test_places_of_streams_are_bounded_for_one_and_for_all() -> None:
    room = FairRoom(10)
    places = {
        name: StreamPlaces(at_most=3, refusal="no", room=room, tenant=Tenant(name))
        for name in ("a", "b", "c")
    }
    for _ in range(3):
        places["a"].take()
    with pytest.raises(TooManyStreams):
        places["a"].take()
    for _ in range(3):
        places["b"].take()
    places["c"].take()
    places["c"].check()
    places["c"].take()
    with pytest.raises(TooManyStreams):
        places["c"].check()
    places["b"].leave()
    places["b"].leave()
    places["c"].take()
    places["a"].leave()
    places["a"].take()
