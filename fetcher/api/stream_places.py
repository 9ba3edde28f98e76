"""How many answers without a foreseeable end are sent at a time."""

from dataclasses import dataclass, field
from typing import Final

from fetcher.api.fair_room import FairRoom
from fetcher.api.problems import TOO_MANY_STREAMS
from fetcher.domain.errors import FetcherError
from fetcher.domain.tenants import NO_TENANT, Tenant
from fetcher.queries.preview_result import AT_ONCE
from fetcher.queries.turns import Turns

MOST_EVENT_STREAMS: Final = 256
MOST_RESULT_STREAMS: Final = 128


class TooManyStreams(FetcherError):
    def __init__(self, message: str) -> None:
        super().__init__("503", "request_failed", message, error_code=TOO_MANY_STREAMS)


@dataclass(frozen=True, slots=True)
class StreamRooms:
    """The streams of a whole process and its previews, each of which holds a result in memory: what
    its tenants share."""

    events: FairRoom = field(default_factory=lambda: FairRoom(MOST_EVENT_STREAMS))
    results: FairRoom = field(default_factory=lambda: FairRoom(MOST_RESULT_STREAMS))
    previews: Turns = field(default_factory=lambda: Turns(AT_ONCE))


class StreamPlaces:
    """A place is taken with a stream's first piece, from where on its ``aclose()`` is certain.

    Nothing has been sent then, so that of many that were let in at once those beyond the limit
    still get their 503. In ``room`` the other tenants of the process have their places too.
    """

    def __init__(
        self,
        *,
        at_most: int,
        refusal: str,
        room: FairRoom,
        tenant: Tenant = NO_TENANT,
    ) -> None:
        self._at_most = at_most
        self._refusal = refusal
        self._room = room
        self._tenant_id = tenant.id
        self._taken = 0

    def check(self) -> None:
        """Raise TooManyStreams where none is free."""
        if self._taken >= self._at_most or not self._room.has(1, self._tenant_id):
            raise TooManyStreams(self._refusal)

    def take(self) -> None:
        """Raise TooManyStreams where none is free."""
        self.check()
        self._room.take(1, self._tenant_id)
        self._taken += 1

    def leave(self) -> None:
        self._taken -= 1
        self._room.give_back(1, self._tenant_id)
