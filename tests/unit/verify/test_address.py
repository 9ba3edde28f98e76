"""DSNs of `make verify-sources`."""

from pathlib import Path

import pytest

from fetcher.domain.connections import SourceType
from tests.verify.__main__ import EXIT_USAGE, main
from tests.verify.address import DsnRefused, parsed


def test_a_dsn_is_a_server_a_database_and_a_tls_mode(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("PEM")
    found = parsed(
        f"mssql://o%27brien@db.acme.test/shop%2F1?ssl=true&ca={tmp_path}/ca.pem&schema=sales",
        password="secret",
    )
    assert (found.type, found.host, found.port) == (SourceType.SQL_SERVER, "db.acme.test", 1433)
    assert (found.user, found.database, found.schema) == ("o'brien", "shop/1", "sales")
    assert found.tls is not None
    assert (found.tls.mode, found.tls.ca, found.tls.cert) == ("true", "PEM", "")
    assert found.connection().password_encrypted == "secret"
    assert "secret" not in repr(found)


def test_oracle_has_a_service_or_a_sid() -> None:
    assert parsed("oracle://hr@h/ORDERS", password="").metadata == {"serviceName": "ORDERS"}
    assert parsed("oracle://hr@h?sid=XE", password="").metadata == {"sid": "XE"}


@pytest.mark.parametrize(
    ("dsn", "text"),
    [
        ("postgresql://u:canary@h/db", "no password on the command line"),
        ("http://h/db", "begins with none of"),
        ("mysql://u@h", "needs a host and a database"),
        ("mysql:///db", "needs a host and a database"),
        ("mysql://u@h/db?sslmode=disable", "unknown options: sslmode"),
        ("mysql://u@h:port/db", "no address"),
        ("mysql://u@h/db?ssl=true&ca=/none", "the file of ca cannot be read"),
    ],
)
def test_what_is_no_such_address_is_refused_without_being_shown(dsn: str, text: str) -> None:
    with pytest.raises(DsnRefused, match=text) as refused:
        parsed(dsn, password="")
    assert "canary" not in str(refused.value)


def test_a_password_in_the_dsn_ends_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCHER_VERIFY_PASSWORD", "canary-env")
    assert main(["postgresql://u:canary@h/db"]) == EXIT_USAGE
    assert main([]) == EXIT_USAGE
    shown = capsys.readouterr()
    assert "canary" not in shown.out + shown.err
    assert "FETCHER_VERIFY_PASSWORD" in shown.err
