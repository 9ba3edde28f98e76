"""Seal stored credentials anew under the key in use (decision 044)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fetcher.commands.connection_secrets import with_current_seals
from fetcher.crypto.credentials import CredentialError
from fetcher.crypto.keys import UnknownKeyVersion
from fetcher.domain.connections import Connection, ConnectionName, UpdateAnswer
from fetcher.domain.errors import RecordCorrupt
from fetcher.ports import ConnectionRecords, PasswordCipher, SealedCredentials

MAX_LOOKS: Final = 3
"""A look in which nothing was written proves that nothing is left; somebody who writes all the time
must not keep us here."""


class Rotation(StrEnum):
    """What became of one connection."""

    ROTATED = "rotated"
    """Sealed anew; in a dry run: would be."""
    CURRENT = "already_current"
    CHANGED = "changed_meanwhile"
    """Somebody else wrote at the same time, and won: it is looked at again."""
    UNOPENED = "cannot_be_opened"


class Unopened(StrEnum):
    """Why what is sealed, or the record, cannot be read."""

    UNKNOWN_KEY = "unknown_key_version"
    NOT_AUTHENTIC = "not_authentic"
    """Another key than the one of this version has sealed it, or it was changed."""
    UNREADABLE = "record_unreadable"


WHY: Final[Mapping[type[Exception], Unopened]] = {
    RecordCorrupt: Unopened.UNREADABLE,
    UnknownKeyVersion: Unopened.UNKNOWN_KEY,
    CredentialError: Unopened.NOT_AUTHENTIC,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """One connection's end; ``why`` where it could not be opened."""

    config_name: str
    rotation: Rotation
    why: Unopened | None = None

    @property
    def is_left(self) -> bool:
        return self.rotation in (Rotation.CHANGED, Rotation.UNOPENED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationReport:
    """How it stands with every live connection."""

    key_version: str
    dry_run: bool
    ends: tuple[Rotated, ...] = field(default=())
    is_settled: bool = True
    """False: the last look wrote as well, so that somebody may still seal under a former key."""

    def of(self, rotation: Rotation) -> list[Rotated]:
        return [each for each in self.ends if each.rotation is rotation]

    @property
    def is_all_current(self) -> bool:
        is_planned = self.dry_run and bool(self.of(Rotation.ROTATED))
        is_left = any(each.is_left for each in self.ends)
        return self.is_settled and not (is_planned or is_left)


class RotateCredentials:
    """Connections one after the other, each by one guarded write: what was done stays done, and the
    next run finds it so."""

    def __init__(
        self,
        *,
        connections: ConnectionRecords,
        credentials: SealedCredentials,
        cipher: PasswordCipher,
    ) -> None:
        self._connections = connections
        self._credentials = credentials
        self._cipher = cipher

    async def __call__(
        self, *, dry_run: bool, tell: Callable[[Rotated, int, int], None]
    ) -> RotationReport:
        """``tell`` hears each connection's end, when it is another than in the look before, with
        its place from 1, and of how many.

        Raise PortUnavailable where the store goes away: those before stay sealed anew.
        """
        ends: dict[ConnectionName, Rotated] = {}
        is_settled = True
        for _ in range(1 if dry_run else MAX_LOOKS):
            names = await self._credentials.list_names()
            found: dict[ConnectionName, Rotated] = {}
            is_settled = True
            for place, name in enumerate(names, start=1):
                end = await self._rotated(name, dry_run=dry_run)
                if end is None:
                    continue
                is_settled &= end.rotation not in (Rotation.ROTATED, Rotation.CHANGED)
                found[name] = _together(ends.get(name), end)
                if found[name] != ends.get(name):
                    tell(end, place, len(names))
            ends = found
            if is_settled:
                break
        return RotationReport(
            key_version=self._cipher.key_version,
            dry_run=dry_run,
            ends=tuple(ends.values()),
            is_settled=is_settled or dry_run,
        )

    async def _rotated(self, name: ConnectionName, *, dry_run: bool) -> Rotated | None:
        """None: deleted meanwhile."""
        rotation, why = Rotation.CURRENT, None
        try:
            before = await self._read(name)
            if before is None:
                return None
            after = with_current_seals(before, self._cipher)
        except tuple(WHY) as failure:
            rotation, why = Rotation.UNOPENED, _why(failure)
        else:
            if after != before and dry_run:
                rotation = Rotation.ROTATED
            elif after != before:
                answer = await self._credentials.reseal(after, before=before)
                if answer is UpdateAnswer.GONE:
                    return None
                is_ours = answer is UpdateAnswer.WRITTEN
                rotation = Rotation.ROTATED if is_ours else Rotation.CHANGED
        return Rotated(config_name=name.config_name, rotation=rotation, why=why)

    async def _read(self, name: ConnectionName) -> Connection | None:
        """None: not there any more. Raise RecordCorrupt."""
        if name.id is None:
            raise RecordCorrupt("connection record: _id")
        return await self._connections.get(name.id)


def _why(failure: Exception) -> Unopened:
    return next(why for kind, why in WHY.items() if isinstance(failure, kind))


def _together(earlier: Rotated | None, end: Rotated) -> Rotated:
    """A later look finds current what an earlier one has made so."""
    if earlier is None or end.rotation is not Rotation.CURRENT:
        return end
    return earlier if earlier.rotation is Rotation.ROTATED else end
