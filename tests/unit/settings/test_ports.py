"""One process listens on two ports."""

import pytest

from fetcher.settings import Role
from tests.unit.settings.test_loading import WORKER, load, refusals


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"SERVER_ADDRESS": ":4007"}, "SERVER_ADDRESS: 4007 is HEALTH_PORT too"),
        ({"SERVER_ADDRESS": "127.0.0.1:04007"}, "SERVER_ADDRESS: 4007 is HEALTH_PORT too"),
        ({"SERVER_PORT": "4007"}, "SERVER_PORT: 4007 is HEALTH_PORT too"),
        ({"HEALTH_PORT": "4006"}, "SERVER_PORT: 4006 is HEALTH_PORT too"),
        (
            {"SERVER_PORT": "4007", "SERVER_ADDRESS": ":80", "HEALTH_PORT": "80"},
            "SERVER_ADDRESS: 80 is HEALTH_PORT too",
        ),
    ],
)
def test_both_roles_in_one_process_need_a_port_each(
    environment: dict[str, str], problem: str
) -> None:
    told = f"{problem}: with --role=all each needs a port of its own"
    assert told in refusals({**WORKER, **environment})
    load(Role.WORKER, **WORKER, **environment)


@pytest.mark.parametrize("address", [":0", "[::1]:4007", "[::]:4007", "127.0.0.1:4008"])
def test_an_address_of_its_own_is_no_conflict(address: str) -> None:
    assert load(SERVER_ADDRESS=address, HEALTH_PORT="4007").listen_address == address


def test_without_a_health_port_its_number_is_free() -> None:
    assert load(SERVER_ADDRESS=":4007").listen_address == ":4007"
