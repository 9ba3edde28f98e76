"""A command masks what it was given, in its log, its complaints and the end it did not foresee."""

import logging
import sys
from pathlib import Path

import pytest
import structlog

from fetcher.cli import main
from fetcher.cli.printing import complain
from fetcher.log_secrets import MASK

CANARY = "canary-of-a-command"


class Broken(Exception):
    pass


@pytest.fixture
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    Path(".env").write_text(
        f"OTEL_EXPORTER_OTLP_HEADERS=api-key={CANARY}\nAPP_ENC_KEY=\n", encoding="utf-8"
    )


@pytest.mark.usefixtures("_settings")
def test_a_command_masks_everything_that_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(sys, "argv", ["fetcher", "check-config"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    structlog.get_logger().warning("said", text=f"a {CANARY}", other=[CANARY])
    logging.getLogger("a.library").warning("its %s", CANARY)
    complain(f"refused: {CANARY}")
    sys.excepthook(Broken, Broken(CANARY), None)
    told = capsys.readouterr()
    assert CANARY not in told.out + told.err
    assert told.err.count(MASK) == 5
    assert f"Broken: {MASK}\n" in told.err
