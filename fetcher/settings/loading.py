"""From the environment to settings: every problem is found before anything is opened."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import SecretStr, ValidationError

from fetcher.settings.files import FileUnusable, secret_of
from fetcher.settings.model import Role, Settings
from fetcher.settings.names import OURS, misspelt
from fetcher.settings.rules import all_rules
from fetcher.settings.source_groups import source_groups

SECRET_NAMES = frozenset(
    name.upper() for name, field in Settings.model_fields.items() if field.annotation is SecretStr
)

_GROUPS = "datasource_groups"

KNOWN_NAMES = frozenset(
    {
        *(name.upper() for name in Settings.model_fields if name != _GROUPS),
        *(f"{name}_FILE" for name in SECRET_NAMES),
    }
)
"""Every variable that is read, but those of internal data sources."""


class SettingsRefused(Exception):
    """``problems``: one line a setting, with its name and the rule; never a secret's value."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load_settings(
    environment: Mapping[str, str], role: Role, *, found_before: Iterable[str] = ()
) -> Settings:
    """Read, parse and check everything, and report every problem at once.

    ``found_before`` are problems of where the environment comes from. Raise SettingsRefused. Opens
    nothing but the files that ``NAME_FILE`` variables name.
    """
    problems = [*found_before, *_slips_of_ours(environment)]
    values = _values(environment, problems)
    try:
        settings = Settings(**values)
    except ValidationError as invalid:
        problems += [_line(error) for error in invalid.errors(include_input=False)]
        # The other rules still speak: check them on what can be parsed.
        bad = {str(error["loc"][0]) for error in invalid.errors() if error["loc"]}
        try:
            settings = Settings(**{k: v for k, v in values.items() if k not in bad})
        except ValidationError:
            raise SettingsRefused(problems) from None
    # What could not be read is told once: it is not missing besides.
    unread = {line.partition(":")[0].removesuffix("_FILE") for line in problems}
    rules = all_rules(settings, role, environment)
    problems += [line for line in rules if line.partition(":")[0] not in unread]
    if problems:
        raise SettingsRefused(list(dict.fromkeys(problems)))
    return settings


def _values(environment: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {_GROUPS: source_groups(environment)}
    for field_name in Settings.model_fields:
        if field_name == _GROUPS:
            continue
        name = field_name.upper()
        if name in SECRET_NAMES:
            value = _secret(name, environment, problems)
        else:
            value = environment.get(name, "")
        if value.strip() or (name == "RABBITMQ_JOB_EVENTS_EXCHANGE" and name in environment):
            values[field_name] = value
    return values


def secret_in(environment: Mapping[str, str], name: str) -> str:
    """One secret, from where :func:`load_settings` takes it, for what needs nothing else.

    Blank where it is not set. Raise SettingsRefused.
    """
    problems: list[str] = []
    value = _secret(name, environment, problems)
    if problems:
        raise SettingsRefused(problems)
    return value.strip()


def _secret(name: str, environment: Mapping[str, str], problems: list[str]) -> str:
    value, file_name = environment.get(name, ""), environment.get(f"{name}_FILE", "")
    if not file_name:
        return value
    if value.strip():
        problems.append(f"{name}: set it or {name}_FILE, not both")
        return ""
    try:
        return secret_of(file_name)
    except FileUnusable as unusable:
        problems.append(f"{name}_FILE: {unusable}")
        return ""


def _slips_of_ours(environment: Mapping[str, str]) -> list[str]:
    """Only a name of ours alone refuses the start; of others notes_on warns."""
    slips = misspelt({k: v for k, v in environment.items() if k.startswith(OURS)}, KNOWN_NAMES)
    return [f"{name}: unknown; did you mean {meant}?" for name, meant in slips.items()]


def _line(error: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if not error["loc"]:
        return message
    name = str(error["loc"][0]).upper()
    if error["type"] in ("enum", "literal_error"):
        message = f"must be one of {error['ctx']['expected']}"
    return f"{name}: {message[:1].lower()}{message[1:]}"
