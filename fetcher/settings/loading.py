"""From the environment to settings: every problem is found before anything is opened."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from fetcher.settings.model import Role, Settings
from fetcher.settings.rules import all_rules
from fetcher.settings.source_groups import source_groups

SECRET_NAMES = frozenset(
    name.upper() for name, field in Settings.model_fields.items() if field.annotation is SecretStr
)

_GROUPS = "datasource_groups"


class SettingsRefused(Exception):
    """``problems``: one line a setting, with its name and the rule; never a secret's value."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load_settings(environment: Mapping[str, str], role: Role) -> Settings:
    """Read, parse and check everything, and report every problem at once.

    Raise SettingsRefused. Opens nothing but the files that ``NAME_FILE`` variables name.
    """
    problems: list[str] = []
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
    problems += all_rules(settings, role, environment)
    if problems:
        raise SettingsRefused(list(dict.fromkeys(problems)))
    return settings


def _values(environment: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {_GROUPS: source_groups(environment)}
    for field_name in Settings.model_fields:
        if field_name == _GROUPS:
            continue
        name = field_name.upper()
        value = environment.get(name, "")
        file_name = environment.get(f"{name}_FILE", "")
        if name in SECRET_NAMES and file_name:
            if value:
                problems.append(f"{name}: set it or {name}_FILE, not both")
                continue
            try:
                value = Path(file_name).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                problems.append(f"{name}_FILE: the file cannot be read")
                continue
        if value.strip() or (name == "RABBITMQ_JOB_EVENTS_EXCHANGE" and name in environment):
            values[field_name] = value
    return values


def _line(error: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if not error["loc"]:
        return message
    name = str(error["loc"][0]).upper()
    if error["type"] == "enum":
        message = f"must be one of {error['ctx']['expected']}"
    return f"{name}: {message[:1].lower()}{message[1:]}"
