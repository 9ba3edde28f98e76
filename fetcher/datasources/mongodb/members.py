"""Which member of a replica set is read: what the connection prefers, by what servers say.

pymongo would follow the members that a server names by itself, to addresses that nobody judged. It
is told to speak with one server alone; the way from the named server to another one is ours, and
every step of it is judged like the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fetcher.datasources.mongodb.errors import INVALID_SETTING, PROTOCOL
from fetcher_engine import SourceFailure, Stage

PRIMARY: Final = "primary"
PRIMARY_PREFERRED: Final = "primaryPreferred"
SECONDARY: Final = "secondary"
SECONDARY_PREFERRED: Final = "secondaryPreferred"
NEAREST: Final = "nearest"

NO_SUITABLE_MEMBER: Final = "no_suitable_member"

_PREFERENCES: Final = (PRIMARY, PRIMARY_PREFERRED, SECONDARY, SECONDARY_PREFERRED, NEAREST)
_MAX_MEMBERS: Final = 50
"""As many as a replica set may have."""

Hello = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFrom:
    """What a connection says about the member to read.

    ``is_direct`` is the named server whatever it is. ``replica_set`` is the name that the set must
    have, where one is given.
    """

    preference: str = PRIMARY
    replica_set: str = ""
    is_direct: bool = False

    @property
    def takes_others(self) -> bool:
        """Whether any other member will do where none of the preferred ones is there."""
        return self.preference in (PRIMARY_PREFERRED, SECONDARY_PREFERRED)

    def require_set(self, hello: Hello) -> None:
        """Raise SourceFailure where the server is not of the set that was named."""
        if self.replica_set and hello.get("setName") != self.replica_set:
            raise SourceFailure(Stage.SESSION, INVALID_SETTING)

    def suits(self, hello: Hello) -> bool:
        """Whether this server is one to read from. What is no replica set has no choice."""
        if self.is_direct or "setName" not in hello:
            return True
        is_primary = bool(hello.get("isWritablePrimary") or hello.get("ismaster"))
        is_secondary = bool(hello.get("secondary"))
        if self.preference in (PRIMARY, PRIMARY_PREFERRED):
            return is_primary
        if self.preference in (SECONDARY, SECONDARY_PREFERRED):
            return is_secondary
        return is_primary or is_secondary

    def candidates(self, hello: Hello) -> list[tuple[str, int]]:
        """The members that may suit, as the server names them; raise SourceFailure."""
        if self.preference in (PRIMARY, PRIMARY_PREFERRED):
            named: Sequence[object] = [hello["primary"]] if hello.get("primary") else []
        else:
            known = (hello.get("me"), hello.get("primary"))
            members = [*hello.get("hosts", ()), *hello.get("passives", ())]
            skipped = known if self.preference != NEAREST else known[:1]
            named = [each for each in members if each not in skipped]
        return [_place(each) for each in named[:_MAX_MEMBERS]]


def read_from(metadata: Mapping[str, object]) -> ReadFrom:
    """What a connection's ``readPreference``, ``replicaSet`` and ``directConnection`` say.

    Raise SourceFailure for a preference that MongoDB does not have.
    """
    preference = metadata.get("readPreference") or PRIMARY
    name = metadata.get("replicaSet") or ""
    if preference not in _PREFERENCES or not isinstance(name, str):
        raise SourceFailure(Stage.SESSION, INVALID_SETTING)
    return ReadFrom(
        preference=str(preference),
        replica_set=name.strip(),
        is_direct=metadata.get("directConnection") in (True, "true"),
    )


def _place(named: object) -> tuple[str, int]:
    host, colon, port = str(named).rpartition(":")
    if colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:
        return host.removeprefix("[").removesuffix("]"), int(port)
    raise SourceFailure(Stage.SESSION, PROTOCOL)
