"""Slow clients, floods and malformed requests at the real process: an honest client is answered.

``FETCHER_TEST_FAULTS_DOCUMENT`` names the page that the table is written into.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from sqlite3 import connect

import pytest
import trio

from tests.e2e.cluster import Api, embedded
from tests.e2e.test_embedded import make_shop, register
from tests.faults.hostile_clients import (
    CREATE,
    SMUGGLED,
    Attack,
    Honest,
    Tally,
    again,
    ask_without_end,
    come_and_go,
    dribbling,
    idle,
    not_reading,
    pipeline,
    sending,
    smuggled,
    under,
)
from tests.faults.matrix_outcome import write_into
from tests.scale import IS_NIGHTLY
from tests.servers.processes import FetcherProcess
from tests.servers.waiting import eventually_sync

pytestmark = pytest.mark.e2e

BEGIN = "<!-- the floods: written by their test -->\n"
END = "<!-- end of the floods -->\n"
SECONDS = 6.0 if IS_NIGHTLY else 0.5
MOST_CONNECTIONS = 1000
"""As the server has it."""
MEMORY_MIB = 64
FREEING_SECONDS = 60.0
JSON_TAIL = b"Content-Length: 100000\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Flood:
    """``statuses``: all that it may be answered with; many clients at nightly size, few in CI."""

    attack: Attack
    many: int
    few: int
    statuses: frozenset[int] = frozenset()


def floods(result: str) -> dict[str, Flood]:
    head = b"GET /version HTTP/1.1\r\nHost: t\r\n"
    slow = b"X-Slow: " + b"a" * 500
    long_address = b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: t\r\n\r\n"
    long_head = head + b"X-Long: " + b"a" * 70_000 + b"\r\n\r\n"
    large = CREATE + b"Content-Length: 50000000\r\n\r\n" + bytes(100_000)
    filled = CREATE + b"Content-Length: 4000000\r\n\r\n" + b" " * 4_000_000
    refused = frozenset({400, 414, 431})
    over = MOST_CONNECTIONS + 100
    return {
        "heads, a byte a second": Flood(dribbling(head, slow, pause_seconds=1), over, 100),
        "bodies, a byte a second": Flood(
            dribbling(CREATE + JSON_TAIL, b" " * 500, pause_seconds=1), 500, 50, frozenset({408})
        ),
        "connections that ask for nothing": Flood(idle, 2 * MOST_CONNECTIONS, over),
        "connections that come and go": Flood(come_and_go, 50, 10),
        "requests without end": Flood(ask_without_end, 100, 20, frozenset({200})),
        "500 requests at once": Flood(again(pipeline), 50, 5),
        "addresses of 70 kB": Flood(sending(long_address), 50, 5, refused),
        "heads of 70 kB": Flood(sending(long_head), 50, 5, refused),
        "bodies that say 50 MB": Flood(sending(large), 50, 5, frozenset({413})),
        "bodies of 4 MB": Flood(sending(filled), 50, 5, frozenset({400, 503})),
        "downloads, a byte a second": Flood(not_reading(result), 100, 20),
        "event streams, unread": Flood(not_reading("/v1/fetcher/events"), 200, 20),
    }


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds, as the kernel tells it."""

    resident_mib: float
    descriptors: int

    @classmethod
    def of(cls, process: FetcherProcess) -> "Held":
        of_it = Path(f"/proc/{process.pid}")
        line = next(x for x in (of_it / "status").read_text().splitlines() if x[:6] == "VmRSS:")
        return cls(int(line.split()[1]) / 1024, len(list((of_it / "fd").iterdir())))


@dataclass(frozen=True, slots=True)
class Met:
    """Of one flood."""

    clients: int
    tally: Tally
    honest: Honest
    before: Held
    during: Held
    after: Held

    def row(self, name: str) -> str:
        answers = ", ".join(f"{status}: {n}" for status, n in sorted(self.tally.answers.items()))
        honest = self.honest
        return (
            f"| {name} | {self.clients} | {answers or 'none'} | {len(honest.waits)} |"
            f" {len(honest.failures)} | {honest.share(0.5) * 1000:.0f} |"
            f" {honest.share(0.99) * 1000:.0f} | {max(honest.waits) * 1000:.0f} |"
            f" {self.during.resident_mib - self.before.resident_mib:+.1f} |"
            f" {self.during.descriptors - self.before.descriptors:+d} |"
            f" {self.after.descriptors - self.before.descriptors:+d} |"
        )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[FetcherProcess, Api, str]]:
    """A process with a result of some megabytes; its path."""
    with embedded(tmp_path, LOG_LEVEL="error") as (process, api):
        make_shop(tmp_path)
        path = tmp_path / "fetcher-data" / "sources" / "shop.db"
        with closing(connect(path)) as shop, shop:
            shop.execute(
                "CREATE TABLE many AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
                " SELECT i + 1 FROM n WHERE i < 20000)"
                " SELECT i AS id, printf('%0300d', i) AS name FROM n"
            )
        assert register(api).status == 201
        posted = api.post_job({"shop": {"many": ["id", "name"]}})
        job = api.wait_for_job(posted.body["jobId"])
        assert job["status"] == "completed"
        yield process, api, f"/v1/fetcher/{job['id']}/result"


def test_an_honest_client_is_answered_whatever_others_do(
    service: tuple[FetcherProcess, Api, str],
) -> None:
    process, api, result = service
    met: dict[str, Met] = {}
    quiet = trio.run(partial(under, idle, api.port, clients=0, seconds=SECONDS))[1]
    start = Held.of(process)
    for name, flood in floods(result).items():
        clients = flood.many if IS_NIGHTLY else flood.few
        met[name] = meet(process, api, flood.attack, clients)
        print(met[name].row(name))
    for name, flood in floods(result).items():
        seen = met[name]
        assert seen.honest.failures == [], name
        assert set(seen.tally.answers) <= flood.statuses, name
        assert seen.after.descriptors <= seen.before.descriptors + 10, name
    assert Held.of(process).resident_mib - start.resident_mib < MEMORY_MIB
    assert process.exit_code is None
    if IS_NIGHTLY and (document := os.environ.get("FETCHER_TEST_FAULTS_DOCUMENT")):
        write_into(Path(document), table(met, quiet, start, Held.of(process)), begin=BEGIN, end=END)


def meet(process: FetcherProcess, api: Api, attack: Attack, clients: int) -> Met:
    before = Held.of(process)
    during: list[Held] = []

    async def watched() -> tuple[Tally, Honest]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, process, during)
            seen = await under(attack, api.port, clients=clients, seconds=SECONDS)
            nursery.cancel_scope.cancel()
        return seen

    tally, honest = trio.run(watched)
    # a connection whose client has gone is closed in its own time
    eventually_sync(
        lambda: Held.of(process).descriptors <= before.descriptors + 10,
        deadline_seconds=FREEING_SECONDS,
        what="the descriptors are freed",
    )
    most = Held(max(h.resident_mib for h in during), max(h.descriptors for h in during))
    return Met(clients, tally, honest, before, most, Held.of(process))


async def _watch(process: FetcherProcess, during: list[Held]) -> None:
    while True:
        during.append(Held.of(process))
        await trio.sleep(0.1)


def table(met: Mapping[str, Met], quiet: Honest, start: Held, end: Held) -> str:
    lines = [
        "| clients that | how many | answers to them | honest requests | not answered | median, ms"
        " | 99 %, ms | worst, ms | memory, MiB | descriptors | left |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(each.row(name) for name, each in met.items()),
        "",
        f"With nobody else the honest client waits {quiet.share(0.5) * 1000:.0f} ms (median), at"
        f" most {max(quiet.waits) * 1000:.0f} ms. All the floods together left"
        f" {end.resident_mib - start.resident_mib:+.1f} MiB of {start.resident_mib:.0f}.",
    ]
    return "\n".join(lines)


def test_requests_of_which_two_servers_see_different_ends_are_refused_once(
    service: tuple[FetcherProcess, Api, str],
) -> None:
    """And their connection is given up: what stands behind them is no second request."""
    _, api, _ = service

    async def main() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}

        async def send(name: str) -> None:
            found[name] = await smuggled(api.port, SMUGGLED[name])

        async with trio.open_nursery() as nursery:
            for name in SMUGGLED:
                nursery.start_soon(send, name)
        return found

    found = trio.run(main)
    # replaced by a blank (RFC 9112, 5.2), so that what was to be the body is no request either
    assert found.pop("folded line") == [400, 400]
    assert {name: each for name, each in found.items() if each not in ([400], [501])} == {}
    assert api.call("GET", "/health").status == 200
