"""The threads for sources, shared out among the tenants of a process."""

from fetcher.datasources.threads import SourceThreads, ThreadKind, ThreadLimiter
from fetcher.fair_places import FairPlaces, PlacesLimiter


class FairThreads:
    """As many of each kind as a process without tenants has. A server that says nothing holds a
    thread for as long as its deadline lets it: whoever reads many such leaves half to others."""

    def __init__(self) -> None:
        self._places: dict[ThreadKind, FairPlaces] = {}

    def of_tenant(self, tenant_id: str) -> SourceThreads:
        return _TenantThreads(self, tenant_id)

    def places(self, kind: ThreadKind) -> FairPlaces:
        if kind not in self._places:
            self._places[kind] = FairPlaces(kind.at_once, leaves_room=True)
        return self._places[kind]


class _TenantThreads:
    """Implements :class:`fetcher.datasources.threads.SourceThreads`."""

    def __init__(self, shared: FairThreads, tenant_id: str) -> None:
        self._shared = shared
        self._tenant_id = tenant_id

    def of(self, kind: ThreadKind) -> ThreadLimiter:
        return PlacesLimiter(self._shared.places(kind).of(self._tenant_id, kind.at_once))
