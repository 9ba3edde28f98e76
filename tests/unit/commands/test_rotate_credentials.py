"""Stored credentials sealed anew, beside whoever else writes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fetcher.adapters.memory import open_memory_records
from fetcher.commands.rotate_credentials import (
    MAX_LOOKS,
    RotateCredentials,
    Rotated,
    Rotation,
    RotationReport,
    Unopened,
)
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing, generate_master_key
from fetcher.domain.connections import Connection, ConnectionName, TlsSettings, UpdateAnswer
from fetcher.domain.errors import RecordCorrupt
from fetcher.domain.ids import ConnectionId
from fetcher.domain.tls_keys import open_tls_key, seal_tls_key
from tests.contract.records.builders import a_connection

NOW = datetime(2026, 3, 14, tzinfo=UTC)
OLD, NEW, LOST = (generate_master_key() for _ in range(3))
BY_OLD = CredentialCipher(KeyRing.from_text(OLD, version="1"))
BY_LOST = CredentialCipher(KeyRing.from_text(LOST, version="0"))
BOTH = CredentialCipher(KeyRing.from_text(NEW, version="2", previous=f"1={OLD}"))
BY_NEW = CredentialCipher(KeyRing.from_text(NEW, version="2"))

Interference = Callable[["Room", Connection], Awaitable[None]]


def sealed(name: str, cipher: CredentialCipher = BY_OLD, **changed: Any) -> Connection:
    tls = TlsSettings(mode="require", cert="CERT", key=f"key of {name}")
    return a_connection(
        **{
            "config_name": name,
            "password_encrypted": cipher.encrypt(f"password of {name}"),
            "encryption_key_version": cipher.key_version,
            "tls": seal_tls_key(tls, encrypt=cipher.encrypt, key_version=cipher.key_version),
            "updated_at": NOW,
        }
        | changed
    )


@dataclass
class Room:
    """A store in memory, in which others may write just before each of our writes."""

    others: list[Interference] = field(default_factory=list)
    corrupt: set[str] = field(default_factory=set)
    told: list[tuple[str, Rotation]] = field(default_factory=list)
    strange: list[ConnectionName] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records = open_memory_records(lambda: NOW)
        self.writes = 0

    async def hold(self, *connections: Connection) -> None:
        for each in connections:
            await self.records.connections.insert(each)

    async def named(self, name: str) -> Connection:
        [found] = await self.records.connections.find_by_config_names([name])
        return found

    # --- ports ---

    async def get(self, connection_id: ConnectionId) -> Connection | None:
        found = await self.records.connections.get(connection_id)
        if found is not None and found.config_name in self.corrupt:
            raise RecordCorrupt("connection record: port")
        return found

    async def list_names(self) -> list[ConnectionName]:
        return [*await self.records.credentials.list_names(), *self.strange]

    async def reseal(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        self.writes += 1
        if self.others:
            await self.others.pop(0)(self, before)
        return await self.records.credentials.reseal(connection, before=before)

    async def rotate(
        self, *, cipher: CredentialCipher = BOTH, dry_run: bool = False
    ) -> RotationReport:
        def tell(each: Rotated, place: int, total: int) -> None:
            assert 1 <= place <= total
            self.told.append((each.config_name, each.rotation))

        rotate = RotateCredentials(connections=self, credentials=self, cipher=cipher)  # type: ignore[arg-type] # both ports, as far as they are asked
        return await rotate(dry_run=dry_run, tell=tell)


def ends(report: RotationReport) -> dict[str, Rotation]:
    return {each.config_name: each.rotation for each in report.ends}


def is_opened_by_new_alone(connection: Connection) -> bool:
    name = connection.config_name
    assert connection.tls is not None
    password = BY_NEW.decrypt(connection.password_encrypted, connection.encryption_key_version)
    key = open_tls_key(connection.tls, BY_NEW.decrypt).key
    return (password, key) == (f"password of {name}", f"key of {name}")


async def test_everything_is_sealed_under_the_key_in_use_and_nothing_else_changes() -> None:
    room = Room()
    before = sealed("a", metadata={"n": 1}, schema="s", product_name="p")
    await room.hold(before, sealed("b", BOTH))
    report = await room.rotate()
    assert ends(report) == {"a": Rotation.ROTATED, "b": Rotation.CURRENT}
    assert report.is_all_current
    after = await room.named("a")
    assert is_opened_by_new_alone(after)
    secrets = {
        n: getattr(before, n) for n in ("password_encrypted", "encryption_key_version", "tls")
    }
    assert replace(after, **secrets) == before
    again = await room.rotate(cipher=BY_NEW)
    assert ends(again) == {"a": Rotation.CURRENT, "b": Rotation.CURRENT}
    assert (room.writes, again.is_all_current) == (1, True)


async def test_a_dry_run_writes_nothing_and_tells_that_something_is_to_be_done() -> None:
    room = Room()
    before = sealed("a")
    await room.hold(before)
    report = await room.rotate(dry_run=True)
    assert (ends(report), report.is_all_current) == ({"a": Rotation.ROTATED}, False)
    assert (room.writes, await room.named("a")) == (0, before)
    await room.rotate()
    assert (await room.rotate(dry_run=True)).is_all_current


async def test_password_and_tls_key_may_be_of_different_versions() -> None:
    """PATCH with a password alone leaves the key as it was."""
    room = Room()
    old, new = sealed("a"), sealed("a", BOTH)
    await room.hold(
        replace(old, config_name="a", tls=new.tls),
        replace(sealed("b", BOTH), tls=sealed("b").tls),
        sealed("c", tls=None),
        sealed("d", password_encrypted=""),
        sealed("e", tls=None, password_encrypted="", encryption_key_version=""),
    )
    report = await room.rotate()
    by_name = ends(report)
    assert by_name.pop("e") is Rotation.CURRENT
    assert set(by_name.values()) == {Rotation.ROTATED}
    assert is_opened_by_new_alone(await room.named("a"))
    assert is_opened_by_new_alone(await room.named("b"))
    assert [(await room.named(n)).encryption_key_version for n in "cde"] == ["2", "2", ""]
    assert (await room.rotate(cipher=BY_NEW)).is_all_current


async def test_a_key_that_the_reference_stored_in_clear_stays_so() -> None:
    room = Room()
    in_clear = TlsSettings(mode="require", key="-----BEGIN PRIVATE KEY-----")
    await room.hold(sealed("a", tls=in_clear))
    await room.rotate()
    assert (await room.named("a")).tls == in_clear


async def test_what_cannot_be_opened_is_told_and_stays_and_the_rest_is_done() -> None:
    room = Room(corrupt={"broken"}, strange=[ConnectionName(id=None, config_name="no_id")])
    lost = sealed("lost", BY_LOST)
    forged = sealed("forged", password_encrypted=BY_LOST.encrypt("x"))
    plain = sealed("plain", password_encrypted="hunter2", encryption_key_version="")
    mangled = sealed("mangled", BOTH, password_encrypted="AAAA")
    await room.hold(lost, sealed("fine"), forged, plain, mangled, sealed("broken"))
    report = await room.rotate()
    assert {each.config_name: each.why for each in report.of(Rotation.UNOPENED)} == {
        "lost": Unopened.UNKNOWN_KEY,
        "plain": Unopened.UNKNOWN_KEY,
        "forged": Unopened.NOT_AUTHENTIC,
        "mangled": Unopened.NOT_AUTHENTIC,
        "broken": Unopened.UNREADABLE,
        "no_id": Unopened.UNREADABLE,
    }
    assert not report.is_all_current
    assert is_opened_by_new_alone(await room.named("fine"))
    assert await room.named("lost") == lost
    assert room.writes == 1


async def patched(room: Room, before: Connection) -> None:
    """A password that somebody sets anew under the key in use."""
    after = replace(
        before,
        password_encrypted=BOTH.encrypt("set anew"),
        encryption_key_version="2",
        updated_at=before.updated_at + timedelta(milliseconds=1),
    )
    answer = await room.records.connections.update(after, before=before)
    assert answer is UpdateAnswer.WRITTEN


async def moved(room: Room, before: Connection) -> None:
    """A change by a manager that still has the old key in use."""
    after = replace(before, port=1, updated_at=before.updated_at + timedelta(milliseconds=1))
    answer = await room.records.connections.update(after, before=before)
    assert answer is UpdateAnswer.WRITTEN


async def deleted(room: Room, before: Connection) -> None:
    assert await room.records.connections.delete(before.id, at=NOW)


async def test_whoever_sets_a_password_meanwhile_wins_and_is_told_and_looked_at_again() -> None:
    room = Room(others=[patched])
    await room.hold(sealed("a", tls=None))
    report = await room.rotate()
    assert room.told == [("a", Rotation.CHANGED), ("a", Rotation.CURRENT)]
    assert (ends(report), report.is_all_current) == ({"a": Rotation.CURRENT}, True)
    after = await room.named("a")
    assert BY_NEW.decrypt(after.password_encrypted, "2") == "set anew"


async def test_a_change_of_something_else_is_kept_and_its_seals_are_done_in_the_next_look() -> None:
    room = Room(others=[moved])
    await room.hold(sealed("a"))
    report = await room.rotate()
    assert [end for _, end in room.told] == [Rotation.CHANGED, Rotation.ROTATED]
    assert (ends(report), report.is_all_current) == ({"a": Rotation.ROTATED}, True)
    after = await room.named("a")
    assert (after.port, is_opened_by_new_alone(after)) == (1, True)


async def test_who_is_changed_all_the_time_is_left_and_told() -> None:
    room = Room(others=[moved] * MAX_LOOKS)
    await room.hold(sealed("a"))
    report = await room.rotate()
    assert (ends(report), report.is_all_current) == ({"a": Rotation.CHANGED}, False)
    assert (await room.rotate()).is_all_current


async def test_a_last_look_that_wrote_proves_nothing() -> None:
    """Whoever writes all the time may be a manager that still seals under the former key."""
    room = Room(others=[moved] * (MAX_LOOKS - 1))
    await room.hold(sealed("a"))
    report = await room.rotate()
    assert (ends(report), report.is_settled) == ({"a": Rotation.ROTATED}, False)
    assert not report.is_all_current
    assert (await room.rotate()).is_all_current


async def test_a_connection_that_is_deleted_meanwhile_is_nobody_s_concern() -> None:
    room = Room(others=[deleted])
    await room.hold(sealed("a"))
    report = await room.rotate()
    assert (report.ends, report.is_all_current) == ((), True)


@pytest.mark.parametrize("late", [1, 2])
async def test_what_comes_to_be_under_the_old_key_during_a_look_is_found(late: int) -> None:
    """A manager that was not restarted yet registers one; the look that settles finds it."""

    async def registered(room: Room, before: Connection) -> None:
        await room.hold(sealed("late"))

    room = Room(others=[*[moved] * (late - 1), registered])
    await room.hold(sealed("a"))
    report = await room.rotate()
    assert set(ends(report).values()) == {Rotation.ROTATED}
    assert is_opened_by_new_alone(await room.named("late"))
