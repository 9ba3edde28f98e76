import socket
from pathlib import Path

import pytest

from tests.servers.addresses import (
    ServerMissingError,
    SqlAddress,
    mariadb_address,
    postgres_address,
    read_settings,
    url_of,
)


def test_the_environment_overrules_the_file(tmp_path: Path) -> None:
    env_file = tmp_path / "env"
    env_file.write_text("# by make services\nFETCHER_TEST_A=file=1\nFETCHER_TEST_B=file\n")
    environment = {"FETCHER_TEST_B": "mine", "FETCHER_TEST_A": "", "OTHER": "x"}
    assert read_settings(env_file, environment) == {
        "FETCHER_TEST_A": "file=1",
        "FETCHER_TEST_B": "mine",
    }


def test_without_a_file_the_environment_is_enough(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "none", {"FETCHER_TEST_A": "1"}) == {"FETCHER_TEST_A": "1"}


@pytest.mark.parametrize("find", [postgres_address, mariadb_address])
def test_a_missing_setting_says_what_to_run(find: object) -> None:
    assert callable(find)
    with pytest.raises(ServerMissingError, match="is not set: run `make services`"):
        find({})


def test_a_server_that_does_not_listen_says_what_to_run() -> None:
    with socket.socket() as bound_but_deaf:
        bound_but_deaf.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{bound_but_deaf.getsockname()[1]}/0"
        with pytest.raises(ServerMissingError, match=r"nothing answers at .* run `make services`"):
            url_of({"U": url}, "U", default_port=6379)


@pytest.mark.parametrize("form", ["host={} port={} user=u", "postgresql://u@{}:{}/postgres"])
def test_both_forms_of_a_dsn_are_understood(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        address = postgres_address({"FETCHER_TEST_POSTGRES_DSN": form.format(host, port)})
    assert address == SqlAddress(host=host, port=port, user="u", database="postgres")


def test_a_password_is_not_shown() -> None:
    address = SqlAddress(host="h", port=1, user="u", database="d", password="canary word")
    assert "canary" not in repr(address)
    assert address.conninfo == "host=h port=1 user=u dbname=d password='canary word'"
