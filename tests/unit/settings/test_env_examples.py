"""config/*.env.example: what somebody copies, fills in and starts with."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from fetcher.settings import Role, Settings, load_settings
from fetcher.settings.fields import ReadBy
from tests.unit.settings.test_loading import KEY, refusals

CONFIG = Path(__file__).parents[3] / "config"

SECRETS = {"APP_ENC_KEY": KEY, "RABBITMQ_DEFAULT_PASS": "secret"}


def text_of(role: Role) -> str:
    return (CONFIG / f"{role.value}.env.example").read_text("utf-8")


def values_of(role: Role) -> dict[str, str]:
    found = dotenv_values(CONFIG / f"{role.value}.env.example", interpolate=False)
    return {name: value or "" for name, value in found.items()}


@pytest.mark.parametrize("role", [Role.MANAGER, Role.WORKER])
def test_an_example_starts_its_role_once_the_secrets_are_filled_in(role: Role) -> None:
    settings = load_settings({**values_of(role), **SECRETS}, role)
    assert not settings.needs_data_folder
    assert settings.mongo_host == "mongo.example.com"
    assert not settings.allow_insecure_tls


@pytest.mark.parametrize("role", [Role.MANAGER, Role.WORKER])
def test_an_example_says_what_must_be_filled_in(role: Role) -> None:
    assert refusals(values_of(role), role) == [
        "APP_ENC_KEY: master key too short: got 0 bytes, minimum 32 required",
        "RABBITMQ_DEFAULT_PASS: required with RabbitMQ",
    ]


def test_the_example_of_one_process_sets_nothing() -> None:
    assert values_of(Role.ALL) == {}
    assert "\n# SERVER_ADDRESS=\n" in text_of(Role.ALL)


@pytest.mark.parametrize("name", [n for n in Settings.model_fields if n != "datasource_groups"])
def test_an_example_has_what_its_role_reads(name: str) -> None:
    """What has no effect stands in docs/settings.md alone."""
    marks = Settings.model_fields[name].metadata
    has_effect = not any(type(mark).__name__ == "NoEffect" for mark in marks)
    readers = [mark.role for mark in marks if isinstance(mark, ReadBy)] or [Role.ALL]
    for role in Role:
        is_read = has_effect and (Role.ALL in (role, readers[0]) or role is readers[0])
        stands = any(f"\n{lead}{name.upper()}=" in text_of(role) for lead in ("", "# "))
        assert stands is is_read, role
