"""Names in an environment that are no settings: misspelt ones, and those of the reference."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from fetcher.settings.source_groups import SUFFIXES, group_names, group_variables

NOT_READ: Final = frozenset(
    {
        "MULTI_TENANT_ENVIRONMENT",
        "RABBITMQ_MULTI_TENANT_SYNC_INTERVAL",
        "RABBITMQ_MULTI_TENANT_DISCOVERY_TIMEOUT",
        "SEAWEEDFS_HOST",
        "SEAWEEDFS_FILER_PORT",
        "SEAWEEDFS_TTL",
        "STORAGE_PROVIDER",
        "CRYPTO_ENCRYPT_FILE_STORAGE",
        "CRYPTO_HASH_SECRET_KEY_FILE_STORAGE",
        "LICENSE_KEY",
        "ORGANIZATION_IDS",
    }
)
"""Shipped with the reference and read by nobody (spec configuration 2.12), with these families."""
NOT_READ_FAMILIES: Final = (
    "RATE_LIMIT_",
    "AGGRESSIVE_RATE_LIMIT_",
    "RELAXED_RATE_LIMIT_",
    "ALLOW_RATELIMIT_",
)

ELSEWHERE: Final = frozenset(
    {
        *("FETCHER_EXTERNAL_HMAC_KEY", "FETCHER_STORAGE_KEY"),
        *("FETCHER_TOKEN", "FETCHER_TOKEN_FILE"),
        "FETCHER_DEMO_POSTGRES_DSN",
    }
)
"""Read by commands, not by the service."""
ELSEWHERE_FAMILIES: Final = ("OTEL_", "FETCHER_TEST_", "FETCHER_BENCH_")

OURS: Final = "FETCHER_"
"""Nobody else's names begin so, and FETCHER_ACCESS_TOKEN protects: a slip must not undo it."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_SERVICE_LINK: Final = re.compile(r".+_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_[0-9]+_.+)")
"""What Kubernetes puts into every container for each service: FETCHER_MANAGER_SERVICE_HOST."""
_GROUP_PART: Final = re.compile(rf"DATASOURCE_(.+)_({'|'.join(SUFFIXES)})(?:_FILE)?")

_CLOSE: Final = 0.8
"""How alike two names must be (difflib's ratio) that begin with the same word; MONGO_USERNAME and
MONGO_USER are 0.83."""
_CLOSE_ELSEWHERE: Final = 0.88
"""The same for names that do not: RABITMQ_HOST."""


def misspelt(environment: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """The names that look like a slip, each with what was probably meant."""
    meant = frozenset({*known, *group_variables(environment), *ELSEWHERE})
    families = frozenset(name.partition("_")[0] for name in meant)
    found = {}
    for name, value in sorted(environment.items()):
        if name in meant or not value.strip() or _is_somebody_elses(name, value):
            continue
        upper = name.upper()
        is_family = upper.partition("_")[0] in families
        close = get_close_matches(
            upper, meant, n=1, cutoff=_CLOSE if is_family else _CLOSE_ELSEWHERE
        )
        if close and "_" in close[0]:
            found[name] = close[0]
    return found


def _is_somebody_elses(name: str, value: str) -> bool:
    return (
        name in NOT_READ
        or name.startswith((*NOT_READ_FAMILIES, *ELSEWHERE_FAMILIES))
        or _NAME.fullmatch(name) is None
        or _SERVICE_LINK.fullmatch(name) is not None
        or value.startswith(("tcp://", "udp://"))
    )


def not_read(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the reference that nothing reads, as far as they are set."""
    return tuple(
        sorted(
            name
            for name, value in environment.items()
            if value.strip() and (name in NOT_READ or name.startswith(NOT_READ_FAMILIES))
        )
    )


def groups_without_name(environment: Mapping[str, str], known: Iterable[str]) -> tuple[str, ...]:
    """Groups ``DATASOURCE_{NAME}_*`` that no CONFIG_NAME makes one: nothing of them is read."""
    complete, settings = group_names(environment), frozenset(known)
    parts = (
        _GROUP_PART.fullmatch(name)
        for name, value in environment.items()
        if value.strip() and name not in settings
    )
    return tuple(sorted({part[1] for part in parts if part and part[1] not in complete}))
