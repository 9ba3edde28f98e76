"""What a look at the broker's objects and at the bucket found."""

from dataclasses import dataclass
from enum import StrEnum


class FindingStatus(StrEnum):
    OK = "ok"
    CREATED = "created"
    ACCEPTED = "accepted"
    """It differs in a way that we can work with; what is lost by that is told."""
    UNCHECKED = "unchecked"
    """The other side does not tell, or not to us."""
    MISSING = "missing"
    DIFFERS = "differs"
    REFUSED = "refused"
    """The other side said no."""

    @property
    def is_failure(self) -> bool:
        return self in (FindingStatus.MISSING, FindingStatus.DIFFERS, FindingStatus.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One object: ``kind`` is ``exchange``, ``queue``, ``binding`` or ``bucket rule``."""

    kind: str
    name: str
    status: FindingStatus
    details: tuple[str, ...] = ()
