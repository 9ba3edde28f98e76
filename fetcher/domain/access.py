"""What a caller may do, and how it was judged (spec rest-api 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from fetcher.domain.json_values import JsonValue

MACHINE_SUBJECT: Final = "admin/fetcher-editor-role"
NORMAL_USER: Final = "normal-user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One kind of operation, in the authorization service's words."""

    resource: str
    action: str


class Refusal(StrEnum):
    """Why a caller is not let in."""

    MISSING_TOKEN = "missing_token"  # noqa: S105 - a reason, not a token
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class Granted:
    """The caller may. ``subject`` is who that is, as far as it is known."""

    subject: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    reason: Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Relayed:
    """A refusal in the authorization service's own words, told to the caller as it is."""

    status: int
    body: Mapping[str, str]


Verdict: TypeAlias = Granted | Refused | Relayed


def subject_of(claims: Mapping[str, JsonValue]) -> str | None:
    """Who asks, as the authorization service names it; None for a user without an owner."""
    if claims.get("type") != NORMAL_USER:
        return MACHINE_SUBJECT
    owner, user = claims.get("owner"), claims.get("sub")
    if not isinstance(owner, str) or not owner.strip():
        return None
    return f"{owner}/{user if isinstance(user, str) else ''}"
