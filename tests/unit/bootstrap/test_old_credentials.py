"""A former key whose time is over goes on opening what is stored, and is told of."""

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from fetcher.bootstrap.old_credentials import OldCredentialsCipher
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing, UnknownKeyVersion, generate_master_key

UNTIL = datetime(2026, 12, 31, tzinfo=UTC)
FORMER, CURRENT = generate_master_key(), generate_master_key()


@pytest.mark.parametrize(("now", "is_told"), [(UNTIL.replace(year=2025), False), (UNTIL, True)])
async def test_it_opens_and_is_told_once_from_its_end_on(now: datetime, is_told: bool) -> None:
    stored = CredentialCipher(KeyRing.from_text(FORMER, version="1")).encrypt("hunter2")
    ring = KeyRing.from_text(CURRENT, version="2", previous=f"1={FORMER}", previous_until=UNTIL)
    cipher = OldCredentialsCipher(CredentialCipher(ring), ring, now=lambda: now)
    with capture_logs() as told:
        assert cipher.decrypt(stored, "1") == "hunter2"
        assert cipher.decrypt(stored, "1") == "hunter2"
        assert cipher.decrypt(cipher.encrypt("new"), cipher.key_version) == "new"
    expected = {
        "event": "credentials_under_ended_key",
        "key_version": "1",
        "log_level": "warning",
        "remedy": "fetcher keys rotate",
    }
    assert told == ([expected] if is_told else [])
    with pytest.raises(UnknownKeyVersion):
        cipher.decrypt(stored, "3")
