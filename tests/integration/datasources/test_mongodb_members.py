"""Members of a replica set: which of them is read, and that each way to one is judged.

The servers are fakes of ours that say what members say; no real set was at hand.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio

from fetcher.datasources.addresses import Judge
from fetcher.datasources.mongodb import client, connect
from fetcher.datasources.mongodb.connect import open_session
from fetcher.datasources.mongodb.members import ReadFrom
from fetcher.datasources.targets import Target
from fetcher_engine import SourceFailure, Stage
from tests.servers.fake_mongo import STANDALONE, FakeMongo, fake_mongo

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("brief_threads")]

NOBODY = "127.0.0.1:1"


@asynccontextmanager
async def a_set(size: int = 3) -> AsyncIterator[Sequence[FakeMongo]]:
    """The first is the primary, the others follow it."""
    async with AsyncExitStack() as stack:
        members = [await stack.enter_async_context(fake_mongo()) for _ in range(size)]
        for number, member in enumerate(members):
            member.hello |= {
                "setName": "rs0",
                "hosts": [each.place for each in members],
                "primary": members[0].place,
                "me": member.place,
                "isWritablePrimary": number == 0,
                "ismaster": number == 0,
                "secondary": number > 0,
            }
        yield members


def target(named: FakeMongo, judge: Judge | None = None, **metadata: Any) -> Target:
    return Target(
        host="127.0.0.1",
        port=named.port,
        database="db",
        user="",
        password="",
        metadata=metadata,
        judge=judge,
    )


async def read_at(to: Target) -> int:
    """The port of the server that is read."""
    with trio.fail_after(10):
        session = await open_session(to, auth_source="admin")
        try:
            await session.run(lambda: session.client.admin.command("ping"))
            address = session.client.address
        finally:
            await session.close()
    assert address is not None
    return address[1]


async def failure_of(to: Target) -> tuple[Stage, str]:
    with pytest.raises(SourceFailure) as caught:
        await read_at(to)
    return caught.value.stage, caught.value.reason


@pytest.mark.parametrize(
    ("preference", "named", "read"),
    [
        (None, 0, {0}),
        (None, 1, {0}),
        ("primary", 2, {0}),
        ("primaryPreferred", 1, {0}),
        ("secondary", 0, {1, 2}),
        ("secondary", 1, {1}),
        ("secondaryPreferred", 0, {1, 2}),
        ("nearest", 0, {0}),
        ("nearest", 2, {2}),
    ],
)
async def test_the_member_that_is_preferred_is_read(
    preference: str | None, named: int, read: set[int]
) -> None:
    async with a_set() as members:
        metadata: dict[str, Any] = {} if preference is None else {"readPreference": preference}
        ports = {members[number].port for number in read}
        assert await read_at(target(members[named], **metadata)) in ports
        pinged = [member for member in members if "ping" in member.names()]
        assert len(pinged) == 1


@pytest.mark.parametrize("direct", [True, "true"])
async def test_a_direct_connection_reads_the_named_server(direct: object) -> None:
    async with a_set() as members:
        assert await read_at(target(members[1], directConnection=direct)) == members[1].port


async def test_what_is_no_replica_set_has_no_choice() -> None:
    async with fake_mongo() as alone:
        assert await read_at(target(alone, readPreference="secondary")) == alone.port


async def test_every_member_is_judged_like_the_named_server() -> None:
    async with a_set() as members:
        seen: list[tuple[str, int]] = []

        def judge(host: str, port: int, addresses: Sequence[str]) -> None:
            seen.append((host, port))
            if port == members[0].port:
                raise SourceFailure(Stage.DNS, "host_refused")

        assert await failure_of(target(members[1], judge)) == ("dns", "host_refused")
        assert seen == [("127.0.0.1", members[1].port), ("127.0.0.1", members[0].port)]
        assert members[0].commands == []
        assert members[2].commands == []
        # where others will do, the one that was named and judged is read
        preferred = target(members[1], judge, readPreference="primaryPreferred")
        assert await read_at(preferred) == members[1].port


async def test_members_that_cannot_be_reached() -> None:
    async with a_set(2) as (primary, secondary):
        secondary.hello["primary"] = NOBODY
        assert await failure_of(target(secondary)) == ("tcp", "refused")
        secondary.hello["primary"] = "no-such-host.invalid:27017"
        assert await failure_of(target(secondary)) == ("dns", "dns")
        secondary.hello["primary"] = "nonsense"
        assert await failure_of(target(secondary)) == ("session", "protocol")
        del secondary.hello["primary"]
        assert await failure_of(target(secondary)) == ("session", "no_suitable_member")
        primary.hello["hosts"] = [primary.place, NOBODY, secondary.place]
        assert await read_at(target(primary, readPreference="secondary")) == secondary.port
        primary.hello["hosts"] = [primary.place, NOBODY]
        assert await failure_of(target(primary, readPreference="secondary")) == ("tcp", "refused")
        wished = target(primary, readPreference="secondaryPreferred")
        assert await read_at(wished) == primary.port


async def test_a_primary_that_has_stepped_down_is_not_followed_for_ever() -> None:
    async with a_set(2) as (primary, secondary):
        primary.hello |= {"isWritablePrimary": False, "ismaster": False, "secondary": True}
        primary.hello["primary"] = secondary.place
        assert await failure_of(target(secondary)) == ("session", "no_suitable_member")


async def test_the_named_set_must_be_the_servers() -> None:
    async with a_set(1) as (primary,):
        assert await read_at(target(primary, replicaSet="rs0")) == primary.port
        wrong = ("session", "invalid_setting")
        assert await failure_of(target(primary, replicaSet="rs1")) == wrong
        assert await failure_of(target(primary, readPreference="Primary")) == wrong
        primary.hello.clear()
        primary.hello |= STANDALONE
        assert await failure_of(target(primary, replicaSet="rs0")) == wrong


async def test_a_member_that_is_silent_ends_with_the_rest_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "TOTAL_SECONDS", 0.6)
    monkeypatch.setattr(client, "_PHASE_MS", 5000)
    silent = trio.socket.socket()
    await silent.bind(("127.0.0.1", 0))
    silent.listen(4)
    async with a_set(2) as (_, secondary):
        with silent:
            secondary.hello["primary"] = f"127.0.0.1:{silent.getsockname()[1]}"
            with trio.fail_after(2):
                assert await failure_of(target(secondary)) == ("auth", "timeout")


def test_members_are_named_by_host_and_port() -> None:
    wanted = ReadFrom(preference="nearest")
    hello = {
        "hosts": ["db1.example:27017", "[::1]:27018", "me:1"],
        "passives": ["p:3"],
        "me": "me:1",
    }
    found = wanted.candidates(hello)
    assert found == [("db1.example", 27017), ("::1", 27018), ("p", 3)]
    for broken in ("x", "x:", ":1", "x:0", "x:65536", "x:1x", 5):
        with pytest.raises(SourceFailure):
            wanted.candidates({"hosts": [broken]})
