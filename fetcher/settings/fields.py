"""What a setting is made of: types that parse strictly, and what its documents say beside it.

A field of a group is ``name: Annotated[type, …, Field(description="…"), marks…] = default``. The
marks say what the type cannot; docs/settings.md and the examples in config are made from all of it.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator


class Role(StrEnum):
    MANAGER = "manager"
    WORKER = "worker"
    ALL = "all"

    @property
    def manages(self) -> bool:
        return self in (Role.MANAGER, Role.ALL)

    @property
    def works(self) -> bool:
        return self in (Role.WORKER, Role.ALL)


class DeploymentMode(StrEnum):
    LOCAL = "local"
    BYOC = "byoc"
    SAAS = "saas"


class SettingsGroup(BaseModel):
    """Settings that stand together in the documents, under ``TITLE``."""

    TITLE: ClassVar[str]


@dataclass(frozen=True, slots=True)
class ReadBy:
    """The one role that reads the setting; without this mark both do."""

    role: Role


MANAGER: Final = ReadBy(Role.MANAGER)
WORKER: Final = ReadBy(Role.WORKER)


@dataclass(frozen=True, slots=True)
class Unset:
    """What counts where the setting is not set, when that follows from others."""

    text: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be set, where the type's own bounds do not say it."""

    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """Stands in the examples of manager and worker, in force; ``""``: somebody must fill it in."""

    value: str


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Accepted and checked, because deployments of the reference set it; nothing follows."""


TRUE_WORDS: Final = frozenset({"1", "true", "t", "yes", "on"})
FALSE_WORDS: Final = frozenset({"0", "false", "f", "no", "off"})


def _boolean(value: object) -> object:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
        raise ValueError("must be one of true, false, 1, 0, yes, no, on, off, t, f")
    return value


Boolean = Annotated[bool, BeforeValidator(_boolean)]


MOST_SECONDS: Final = 31 * 86_400
"""A month: times are added to the clock, and a year beyond 9999 is none."""


def positive_or_default(default: float) -> Any:
    """Spec configuration 2: 0 and negative values of these counts mean the default."""

    def keep(value: object) -> object:
        if isinstance(value, str):
            number = whole_number(value)
            return number if number > 0 else default
        return value

    return BeforeValidator(keep)


def port_or_none(value: object) -> object:
    """A number that is no port counts as unset (spec configuration 2.1, ``HEALTH_PORT``)."""
    if isinstance(value, str):
        number = whole_number(value)
        return number if 0 < number < 65536 else None
    return value


def drain_seconds(value: object) -> object:
    """0 means the default of 12, a negative number 1 (spec configuration 2.7)."""
    if isinstance(value, str):
        try:
            seconds = float(value.strip())
        except ValueError:
            raise ValueError("must be a number of seconds") from None
        if seconds == 0:
            return 12.0
        return 1.0 if seconds < 0 else seconds
    return value


_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?(?:Z|[+-]\d{2}:\d{2})", re.ASCII
)


def moment_or_day(value: object) -> object:
    """The first moment that is too late: RFC 3339 as it is, a day as the beginning of the next."""
    if not isinstance(value, str):
        return value
    text = value.strip().upper()
    try:
        if _DAY.fullmatch(text):
            return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC)
        if _MOMENT.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # told below, as what is no time at all
    raise ValueError("must be a time of RFC 3339 with a zone, or a date like 2027-01-31")


def trimmed_lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def plain_digits(value: object) -> object:
    """Raise ValueError for a number that only Python reads: ``1_000``, or digits beyond ASCII."""
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError("must be a number in plain digits")
    return value


def whole_number(text: str) -> int:
    """Raise ValueError with the rule; a text of thousands of digits is no number either."""
    try:
        return int(text.strip())
    except ValueError:
        raise ValueError("must be a whole number") from None
