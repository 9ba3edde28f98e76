import base64
import io
import json
import sys
from pathlib import Path

import pytest

from fetcher.cli import main
from fetcher.cli.demo_shop import TOTAL_ROWS, create_shop
from fetcher.consumer import derive_keys

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["fetcher", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APP_ENC_KEY", "DEPLOYMENT_MODE", "LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)


def test_an_unknown_role_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--role=boss") == 2
    assert "manager" in capsys.readouterr().err


def test_bad_settings_are_all_named_and_exit_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOG_LEVEL", "loud")
    monkeypatch.setenv("APP_ENC_KEY", "c2hvcnQ=")
    assert run(monkeypatch, "--role=all") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "fetcher: APP_ENC_KEY: master key too short: got 5 bytes, minimum 32 required",
        "fetcher: LOG_LEVEL: must be one of debug, info, warn, error, dpanic, panic, fatal",
    ]


def test_derive_prints_the_tools_line_exactly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APP_ENC_KEY", f"  {KEY}\n")
    assert run(monkeypatch, "keys", "derive") == 0
    assert capsys.readouterr().out == (
        "External HMAC Key (hex):"
        " ec9eedfd0b245950528714e5328ff2c2639ab32540a309f1cd68685ceaff9dfe\n"
    )
    assert run(monkeypatch, "keys", "derive", "--purpose=storage", "--quiet") == 0
    assert capsys.readouterr().out == (
        "873cea97251cb5a38a4a6dba0fb11225b9cecbcc4e0c5c4ca7c9b9db3cda32c2\n"
    )


def test_derive_takes_the_environment_before_standard_input_before_the_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = base64.b64encode(bytes(32)).decode()
    line = "External HMAC Key (hex): {}\n".format
    ours = line("ec9eedfd0b245950528714e5328ff2c2639ab32540a309f1cd68685ceaff9dfe")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{other}\nmore\n"))
    assert run(monkeypatch, "keys", "derive", f"--key={KEY}") == 0
    of_stdin = capsys.readouterr().out
    assert of_stdin == line(derive_keys(other).external_hmac.hex())
    monkeypatch.setenv("APP_ENC_KEY", KEY)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{other}\n"))
    assert run(monkeypatch, "keys", "derive", f"--key={other}") == 0
    assert capsys.readouterr().out == ours
    monkeypatch.delenv("APP_ENC_KEY")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run(monkeypatch, "keys", "derive", f"--key={KEY}") == 0
    assert capsys.readouterr().out == ours


def test_derive_without_a_key_or_with_a_bad_one_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert run(monkeypatch, "keys", "derive") == 1
    assert capsys.readouterr().err.startswith("Error: No master key provided")
    assert run(monkeypatch, "keys", "derive", "--key=c2hvcnQ=") == 1
    assert "got 5 bytes, minimum 32 required" in capsys.readouterr().err


def test_generated_keys_are_accepted_and_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []
    for _ in range(2):
        assert run(monkeypatch, "keys", "generate") == 0
        made.append(capsys.readouterr().out.strip())
    assert made[0] != made[1]
    monkeypatch.setenv("APP_ENC_KEY", made[0])
    assert run(monkeypatch, "check-config") == 0


def test_check_config_masks_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APP_ENC_KEY", KEY)
    assert run(monkeypatch, "check-config", "--json") == 0
    text = capsys.readouterr().out
    assert KEY not in text
    shown = json.loads(text)
    assert shown["APP_ENC_KEY"] == "********"
    assert shown["RABBITMQ_NUMBERS_OF_WORKERS"] == 5


def test_check_config_shows_the_default_that_counts_where_nothing_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "check-config", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["SERVER_ADDRESS"] == "127.0.0.1:4006"
    assert (shown["SERVER_PORT"], shown["HEALTH_PORT"]) == (4006, 4007)
    assert shown["RABBITMQ_FETCHER_WORK_QUEUE"] == "fetcher.extract-external-data.queue"
    assert shown["RABBITMQ_JOB_EVENTS_EXCHANGE"] == "fetcher.job.events"
    assert shown["STREAMING_CLOUDEVENTS_SOURCE"] == "//fetcher/local"
    assert (shown["RESULT_PREVIEW_ENABLED"], shown["DATASOURCE_HOST_GUARD"]) == (True, False)
    monkeypatch.setenv("SERVER_ADDRESS", "127.0.0.1:5006")
    monkeypatch.setenv("RESULT_PREVIEW_ENABLED", "false")
    assert run(monkeypatch, "check-config", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["SERVER_ADDRESS"], said["SERVER_PORT"]) == ("127.0.0.1:5006", 5006)
    assert said["RESULT_PREVIEW_ENABLED"] is False


def test_check_config_names_internal_sources_and_what_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, config_name in (("CRM", "plugin_crm"), ("OLD", "old_db")):
        group = {"CONFIG_NAME": config_name, "TYPE": "MONGODB", "HOST": "crm.test", "PORT": "1"}
        for suffix, value in {**group, "DATABASE": "crm", "PASSWORD": "canary"}.items():
            monkeypatch.setenv(f"DATASOURCE_{name}_{suffix}", value)
    assert run(monkeypatch, "check-config") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "DATASOURCE_*_CONFIG_NAME │ plugin_crm │" in told
    assert "warning: DATASOURCE_OLD_CONFIG_NAME: must be one of midaz_onboarding" in told
    assert "canary" not in told


def test_the_shop_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    assert create_shop(first) == create_shop(second) == TOTAL_ROWS
    assert first.read_bytes() == second.read_bytes()
    assert TOTAL_ROWS >= 20_000
