"""Groups of variables that each describe one internal data source (spec configuration 12.1).

``DATASOURCE_{NAME}_CONFIG_NAME`` makes a group; what its values mean is judged where it is used.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fetcher.settings.files import FileUnusable, secret_of

_MARK: Final = re.compile(r"DATASOURCE_(.+)_CONFIG_NAME", re.ASCII)
SUFFIXES: Final = (
    "CONFIG_NAME",
    "TYPE",
    "HOST",
    "PORT",
    "DATABASE",
    "USER",
    "PASSWORD",
    "OPTIONS",
    "SSLMODE",
    "SSL_CA",
    "SSL_CERT",
    "SSL_KEY",
)
_SECRETS: Final = frozenset({"PASSWORD", "SSL_KEY"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroup:
    """``values`` by suffix; a blank one is missing. ``problem`` is what makes a group unusable."""

    name: str
    values: Mapping[str, str] = field(repr=False)
    problem: str = ""

    def variable(self, suffix: str) -> str:
        return f"DATASOURCE_{self.name}_{suffix}"


def source_groups(environment: Mapping[str, str]) -> tuple[SourceGroup, ...]:
    """Every group, in the byte order of its variables' names.

    Opens nothing but the files that ``…_PASSWORD_FILE`` and ``…_SSL_KEY_FILE`` name.
    """
    return tuple(_group(name, environment) for name in group_names(environment))


def group_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What stands for ``{NAME}``, in the byte order of the variables."""
    marks = (_MARK.fullmatch(variable) for variable in sorted(environment))
    return tuple(mark.group(1) for mark in marks if mark is not None)


def group_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Every variable that the groups of this environment may have."""
    for name in group_names(environment):
        for suffix in SUFFIXES:
            yield f"DATASOURCE_{name}_{suffix}"
            if suffix in _SECRETS:
                yield f"DATASOURCE_{name}_{suffix}_FILE"


def _group(name: str, environment: Mapping[str, str]) -> SourceGroup:
    values = {}
    problems = []
    for suffix in SUFFIXES:
        variable = f"DATASOURCE_{name}_{suffix}"
        value = environment.get(variable, "")
        file_name = environment.get(f"{variable}_FILE", "") if suffix in _SECRETS else ""
        if file_name and value:
            problems.append(f"{variable}: set it or {variable}_FILE, not both")
        elif file_name:
            try:
                value = secret_of(file_name)
            except FileUnusable as unusable:
                problems.append(f"{variable}_FILE: {unusable}")
        if value.strip():
            values[suffix] = value
    return SourceGroup(name=name, values=values, problem=next(iter(problems), ""))
