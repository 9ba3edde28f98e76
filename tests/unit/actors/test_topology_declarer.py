"""The broker's objects are declared once the broker is there."""

from collections.abc import Sequence

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from fetcher.actors.topology_declarer import TopologyDeclarer
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.topology import Finding, FindingStatus

DIFFERS = Finding(
    kind="queue", name="work", status=FindingStatus.DIFFERS, details=("its durable is false",)
)
ACCEPTED = Finding(kind="queue", name="dead", status=FindingStatus.ACCEPTED, details=("classic",))
CREATED = Finding(kind="exchange", name="events", status=FindingStatus.CREATED)


async def test_a_broker_that_is_away_is_waited_for_and_what_differs_is_told(
    autojump_clock: MockClock,
) -> None:
    answers: list[Sequence[Finding] | None] = [None, None, [DIFFERS, ACCEPTED, CREATED]]

    async def declare() -> Sequence[Finding]:
        await trio.lowlevel.checkpoint()
        answer = answers.pop(0)
        if answer is None:
            raise PortUnavailable("the connection to the broker failed")
        return answer

    with capture_logs() as logs, trio.fail_after(60):
        await TopologyDeclarer(declare=declare).run()
    assert answers == []
    assert [(line["log_level"], line["event"]) for line in logs] == [
        ("warning", "topology_not_declared"),
        ("warning", "topology_not_declared"),
        ("error", "topology_differs"),
        ("warning", "topology_accepted"),
        ("info", "topology_declared"),
    ]
    assert (logs[2]["object"], logs[2]["details"]) == ("work", ["its durable is false"])


async def test_it_can_be_cancelled_while_it_waits(autojump_clock: MockClock) -> None:
    async def declare() -> Sequence[Finding]:
        await trio.lowlevel.checkpoint()
        raise PortUnavailable("away")

    with trio.move_on_after(120) as scope, pytest.raises(trio.Cancelled):
        await TopologyDeclarer(declare=declare).run()
    assert trio.current_time() >= scope.deadline
