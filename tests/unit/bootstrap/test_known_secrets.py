"""What passes through a process is known to what masks its log."""

from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import SecretStr
from structlog.testing import capture_logs

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.bootstrap.keys import existing_key_ring, key_ring
from fetcher.bootstrap.known_secrets import NotingCipher
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing, generate_master_key
from fetcher.log_secrets import MASK, LiveSecrets
from fetcher.logs import configure_logs, send_logs_to_stderr
from fetcher.settings import Settings

KEY = generate_master_key()


def configured_service() -> None:
    configure_logs(env_name="production", level="", encoding="")


@pytest.mark.parametrize("begin", [configured_service, send_logs_to_stderr])
def test_the_data_folders_key_and_those_derived_from_it_are_masked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], begin: Any
) -> None:
    """The service makes it or finds it there; a command finds it."""
    begin()
    settings = Settings(fetcher_data_dir=tmp_path)
    made = key_ring(settings, DataFolder(tmp_path))
    master = (tmp_path / "master.key").read_text(encoding="ascii").strip()
    structlog.get_logger().warning("made", text=f"{master} {made.current.external_hmac.hex()}")
    other = generate_master_key()
    (tmp_path / "master.key").write_text(other, encoding="ascii")
    existing_key_ring(settings)
    structlog.get_logger().warning("found", text=other)
    told = capsys.readouterr()
    text = told.out + told.err
    assert text.count(MASK) == 3
    assert master not in text
    assert other not in text


def test_passwords_that_are_sealed_or_opened_are_masked_from_then_on() -> None:
    secrets = LiveSecrets()
    ring = KeyRing.from_text(KEY)
    stored = CredentialCipher(ring).encrypt("opened-password")
    cipher = NotingCipher(CredentialCipher(ring), secrets)
    assert secrets.masked("opened-password") == "opened-password"
    assert cipher.decrypt(stored, cipher.key_version) == "opened-password"
    cipher.encrypt("sealed-password")
    assert secrets.masked("opened-password sealed-password") == "*** ***"


@pytest.mark.parametrize("is_same", [True, False])
def test_another_key_than_the_data_folders_is_told_at_the_start(
    tmp_path: Path, is_same: bool
) -> None:
    folder = DataFolder(tmp_path)
    made, _ = folder.master_key()
    given = f" {made}\n" if is_same else generate_master_key()
    settings = Settings(fetcher_data_dir=tmp_path, app_enc_key=SecretStr(given))
    with capture_logs() as logged:
        key_ring(settings, folder)
    assert [line["event"] for line in logged] == ([] if is_same else ["master_key_ignored"])
    assert made.strip() not in str(logged)
