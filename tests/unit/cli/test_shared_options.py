"""Whose settings a command reads, and that its exit codes are named once."""

import ast
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fetcher.cli
from fetcher.cli import shared_options
from fetcher.cli.shared_options import RoleName, loaded_for
from fetcher.settings import Role, Settings, SettingsRefused, load_settings


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Role]:
    """The roles whose settings were loaded; ``TEST_BROKEN`` names those that they do not fit."""
    monkeypatch.chdir(tmp_path)
    loads: list[Role] = []

    def load(variables: Mapping[str, str], role: Role, **more: Any) -> Settings:
        loads.append(role)
        if role.value in variables.get("TEST_BROKEN", "").split(","):
            raise SettingsRefused([f"TEST_BROKEN: {role.value}"])
        return load_settings({}, Role.ALL, **more)

    monkeypatch.setattr(shared_options, "load_settings", load)
    return loads


@pytest.mark.parametrize("role", ["all", "manager", "worker"])
def test_settings_that_fit_the_role_that_is_asked_for_are_loaded_once(
    asked: list[Role], role: RoleName
) -> None:
    assert loaded_for(role).role is Role(role)
    assert asked == [Role(role)]


def test_without_a_role_it_is_the_first_that_they_fit(
    asked: list[Role], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_BROKEN", "all,manager")
    assert loaded_for(None).role is Role.WORKER
    assert asked == [Role.ALL, Role.MANAGER, Role.WORKER]


@pytest.mark.parametrize(
    ("broken", "hint"),
    [
        ("worker", ["(checked as role worker; try --role=all)"]),
        ("all,worker", ["(checked as role worker; try --role=manager)"]),
        ("all,manager,worker", []),
    ],
)
def test_a_refusal_names_the_first_role_that_they_fit(
    asked: list[Role], monkeypatch: pytest.MonkeyPatch, broken: str, hint: list[str]
) -> None:
    monkeypatch.setenv("TEST_BROKEN", broken)
    with pytest.raises(SettingsRefused) as refused:
        loaded_for("worker")
    assert list(refused.value.problems) == ["TEST_BROKEN: worker", *hint]
    assert asked[0] is Role.WORKER


def test_each_exit_code_is_named_once() -> None:
    names = Counter(
        target.id
        for path in Path(fetcher.cli.__file__).parent.glob("*.py")
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id.startswith("EXIT_")
    )
    assert names["EXIT_INTERRUPTED"] == 1
    assert set(names.values()) == {1}
