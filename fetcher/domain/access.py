"""What a caller may do, and how it was judged (spec rest-api 3)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One kind of operation, in the authorization service's words."""

    resource: str
    action: str
