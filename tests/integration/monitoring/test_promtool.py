"""What Prometheus itself says of rules and board: by promtool, of Debian's package prometheus."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.monitoring import RULE_TESTS, RULES, alerts, board_expressions

SECONDS = 60

promtool = shutil.which("promtool")
pytestmark = pytest.mark.skipif(
    promtool is None,
    reason="promtool is not here: scripts/services.py up installs it as root on Debian",
)


def run(*arguments: str) -> str:
    assert promtool is not None
    ended = subprocess.run(
        [promtool, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_rules_are_rules() -> None:
    assert f"SUCCESS: {len(alerts())} rules found" in run("check", "rules", str(RULES))


@pytest.mark.parametrize("file", sorted(RULE_TESTS.glob("*.yml")), ids=lambda file: file.stem)
def test_an_alert_fires_when_it_should_and_only_then(file: Path) -> None:
    assert "SUCCESS" in run("test", "rules", str(file))


def test_what_the_board_asks_can_be_asked(tmp_path: Path) -> None:
    """As rules, since promtool checks those."""
    lines = ["groups:", "  - name: board", "    rules:"]
    for number, (_, expression) in enumerate(board_expressions()):
        quoted = expression.replace("'", "''")
        lines += [f"      - record: board:{number}", f"        expr: '{quoted}'"]
    file = tmp_path / "board.yml"
    file.write_text("\n".join(lines) + "\n")
    count = len(list(board_expressions()))
    assert f"SUCCESS: {count} rules found" in run("check", "rules", str(file))


def test_promtool_tells_a_wrong_expectation(tmp_path: Path) -> None:
    """Its verdict is worth something: the same file, with the other expectation."""
    text = (RULE_TESTS / "FetcherRedisAway.yml").read_text(encoding="utf-8")
    assert "values: '1x30'" in text
    turned = text.replace("values: '1x30'", "values: '0x30'").replace(
        f"../{RULES.name}", str(RULES)
    )
    (tmp_path / "turned.yml").write_text(turned)
    assert promtool is not None
    ended = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "turned.yml")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 1
    assert "FetcherRedisAway" in ended.stdout + ended.stderr
