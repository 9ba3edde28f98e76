import base64
import io
import json
import sys
from pathlib import Path

import pytest

from fetcher.cli import main
from fetcher.cli.demo_shop import TOTAL_ROWS, create_shop
from fetcher.consumer import derive_keys
from tests.unit.settings.test_tenant_settings import TENANTS

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
        "fetcher: LOG_LEVEL: must be one of debug, info, warn, error, dpanic, panic, fatal",
        "fetcher: APP_ENC_KEY: master key too short: got 5 bytes, minimum 32 required",
    ]


MANAGER = {
    "APP_ENC_KEY": KEY,
    "MONGO_HOST": "127.0.0.1:1",
    "MONGO_NAME": "fetcher-db",
    "MONGO_PARAMETERS": "serverSelectionTimeoutMS=50",
    "RABBITMQ_HOST": "127.0.0.1",
    "RABBITMQ_PORT_AMQP": "1",
    "RABBITMQ_DEFAULT_USER": "fetcher",
    "RABBITMQ_DEFAULT_PASS": "s3cret",
    "ALLOW_INSECURE_TLS": "true",
}


@pytest.mark.parametrize(
    "command", [("topology", "verify"), ("dlq", "list"), ("topology", "declare")]
)
def test_what_looks_at_parts_needs_no_settings_of_the_other_role(
    command: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in MANAGER.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, *command) == 1
    assert "STREAMING" not in capsys.readouterr().err


def test_a_refusal_says_as_which_role_the_settings_were_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in MANAGER.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, "check-config") == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("fetcher: STREAMING_ENABLED")
    assert told[-1] == "fetcher: (checked as role all; try --role=manager)"
    monkeypatch.setenv("LOG_LEVEL", "loud")
    assert run(monkeypatch, "topology", "verify") == 2
    assert capsys.readouterr().err.splitlines() == [
        "fetcher: LOG_LEVEL: must be one of debug, info, warn, error, dpanic, panic, fatal",
        "fetcher: (checked as role manager; --role chooses another)",
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


def test_derive_goes_by_file_env_and_files_of_secrets_as_the_service_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = f"{derive_keys(KEY).external_hmac.hex()}\n"
    (tmp_path / ".env").write_text(f"APP_ENC_KEY={KEY}\n", encoding="utf-8")
    assert run(monkeypatch, "keys", "derive", "--quiet") == 0
    (tmp_path / "key").write_text(f"{KEY}\n", encoding="utf-8")
    (tmp_path / ".env").write_text("APP_ENC_KEY_FILE=key\n", encoding="utf-8")
    assert run(monkeypatch, "keys", "derive", "--quiet") == 0
    assert capsys.readouterr().out == ours * 2
    (tmp_path / "key").unlink()
    assert run(monkeypatch, "keys", "derive", "--quiet") == 2
    assert "APP_ENC_KEY_FILE: the file cannot be read" in capsys.readouterr().err


def test_derive_takes_the_data_folders_key_after_all_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    (tmp_path / ".env").write_text("FETCHER_DATA_DIR=data\n", encoding="utf-8")
    (tmp_path / "data").mkdir()
    assert run(monkeypatch, "keys", "derive", "--quiet") == 1
    assert not list((tmp_path / "data").iterdir()), "asking makes no key"
    (tmp_path / "data" / "master.key").write_text(f"{KEY}\n", encoding="ascii")
    other = base64.b64encode(bytes(32)).decode()
    capsys.readouterr()
    assert run(monkeypatch, "keys", "derive", "--quiet") == 0
    assert run(monkeypatch, "keys", "derive", "--quiet", f"--key={other}") == 0
    assert capsys.readouterr().out.splitlines() == [
        derive_keys(KEY).external_hmac.hex(),
        derive_keys(other).external_hmac.hex(),
    ]
    (tmp_path / ".env").write_text("FETCHER_DATA_DIR=data\nLOG_LEVEL=loud\n", encoding="utf-8")
    assert run(monkeypatch, "keys", "derive", "--quiet") == 1
    assert "LOG_LEVEL: must be one of" in capsys.readouterr().err


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


def test_check_config_shows_what_is_chosen_and_only_what_the_role_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name, value in MANAGER.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, "check-config", "--role=manager") == 0
    shown = capsys.readouterr().out
    for told in ("mongo (by MONGO_HOST)", "amqp (by RABBITMQ_HOST)", "JOB_PREFLIGHT_TEST"):
        assert told in shown
    assert "RABBITMQ_ALLOW_LEGACY_BODY_SIGNATURE_FALLBACK" not in shown, "a worker reads that"
    assert "None" not in shown
    assert "HEALTH_PORT" not in shown
    assert run(monkeypatch, "check-config", "--role=manager", "--json") == 0
    assert json.loads(capsys.readouterr().out)["RECORD_STORE"] == "mongo"


def test_check_config_of_many_tenants_says_that_stores_are_theirs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in TENANTS.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, "check-config", "--role=worker") == 0
    shown = capsys.readouterr().out
    for told in ("mongo (by MULTI_TENANT_ENABLED)", "amqp (by MULTI_TENANT_ENABLED)"):
        assert told in shown


def test_check_config_warns_and_still_ends_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("OBJECT_STORAGE_KEY_PREFIX=[red]results\nSEAWEEDFS_TTL=7d\n")
    monkeypatch.setenv("RABITMQ_HOST", "canary")
    assert run(monkeypatch, "check-config") == 0
    told = capsys.readouterr().out
    assert "warning: RABITMQ_HOST: unknown; did you mean RABBITMQ_HOST?\n" in told
    assert "warning: OBJECT_STORAGE_KEY_PREFIX: does not end in '/'" in told
    assert "ignored: SEAWEEDFS_TTL\nsettings: OK\n" in told
    assert "[red]results" in told
    assert "canary" not in told
    assert run(monkeypatch, "check-config", "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["OBJECT_STORAGE_KEY_PREFIX"] == "[red]results"
    assert "did you mean RABBITMQ_HOST?" in printed.err


def test_check_config_names_what_is_wrong_in_the_file_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("LOG_LEVEL=loud\nHEALTH_PORT='x\n")
    monkeypatch.setenv("FETCHER_ACCES_TOKEN", "canary")
    assert run(monkeypatch, "check-config") == 2
    assert capsys.readouterr().err.splitlines() == [
        "fetcher: .env: line 2 is no NAME=value",
        "fetcher: FETCHER_ACCES_TOKEN: unknown; did you mean FETCHER_ACCESS_TOKEN?",
        "fetcher: LOG_LEVEL: must be one of debug, info, warn, error, dpanic, panic, fatal",
    ]


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
