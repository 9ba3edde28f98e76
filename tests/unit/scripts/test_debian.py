from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.servers import debian
from scripts.servers.debian import InstallationError


def test_packages_are_installed_without_recommended_ones_after_an_update() -> None:
    assert debian.commands(["redis-server", "postgresql"]) == [
        ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=120", "update"],
        ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=120", "install", "--yes",
         "--no-install-recommends", "redis-server", "postgresql"],
    ]  # fmt: skip


def test_services_are_held_back_while_packages_are_installed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    seen: list[tuple[str, str, int]] = []

    def run(command: Sequence[str]) -> None:
        seen.append((command[-1], policy.read_text(), policy.stat().st_mode & 0o777))

    debian.install(["redis-server"], run=run, policy=policy)
    forbidden = "#!/bin/sh\nexit 101\n"
    assert seen == [("update", forbidden, 0o755), ("redis-server", forbidden, 0o755)]
    assert list(tmp_path.iterdir()) == []


def test_a_policy_of_the_machine_is_put_back_even_after_a_failure(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("theirs")
    policy.chmod(0o750)

    def run(_: Sequence[str]) -> None:
        assert policy.read_text() == debian.POLICY_TEXT
        raise InstallationError("no network")

    with pytest.raises(InstallationError, match="no network"):
        debian.install(["redis-server"], run=run, policy=policy)
    assert (policy.read_text(), policy.stat().st_mode & 0o777) == ("theirs", 0o750)
    assert list(tmp_path.iterdir()) == [policy]


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(InstallationError, match=r"'false'.* exit status 1"):
        debian.run_apt(["false"])


def test_only_root_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert debian.can_install() is False
