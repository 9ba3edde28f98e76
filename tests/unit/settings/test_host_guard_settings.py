"""What the settings of the host guard may say (spec datasources 13)."""

import pytest

from fetcher.settings import Role, Settings, SettingsRefused, load_settings
from fetcher.settings.host_entries import entries_of, ports_of


def load(**environment: str) -> Settings:
    return load_settings(environment, Role.ALL)


def refusals(**environment: str) -> list[str]:
    with pytest.raises(SettingsRefused) as refused:
        load_settings(environment, Role.ALL)
    return refused.value.problems


@pytest.mark.parametrize(
    ("text", "guards"), [("", False), ("on", True), (" OFF ", False), ("true", True), ("0", False)]
)
def test_the_guard_is_off_for_a_single_tenant_unless_it_is_asked_for(
    text: str, guards: bool
) -> None:
    assert load(DATASOURCE_HOST_GUARD=text).guards_hosts is guards


def test_the_guard_follows_multi_tenancy_and_cannot_be_off_with_it() -> None:
    assert Settings(multi_tenant_enabled=True).guards_hosts
    problems = refusals(MULTI_TENANT_ENABLED="true", DATASOURCE_HOST_GUARD="off")
    assert "DATASOURCE_HOST_GUARD: must be on with MULTI_TENANT_ENABLED=true" in problems


def test_every_wrong_list_is_named() -> None:
    assert refusals(
        DATASOURCE_HOST_GUARD="perhaps",
        DATASOURCE_HOST_ALLOW="10.0.0.0/8, 10.0.0.1/8, db_1.acme.test",
        DATASOURCE_HOST_DENY="10.0.0, *.acme.test, fine.acme.test, fe80::1%eth0, 127.1",
        DATASOURCE_PORT_DENY="22, 0, 65536, x, -1, 5_4",
    ) == [
        "DATASOURCE_HOST_GUARD: must be one of true, false, 1, 0, yes, no, on, off, t, f",
        "DATASOURCE_HOST_ALLOW: each entry must be an address, a network without host bits, or a"
        " host name (not so: number 2, 3)",
        "DATASOURCE_HOST_DENY: each entry must be an address, a network without host bits, or a"
        " host name (not so: number 1, 2, 4, 5)",
        "DATASOURCE_PORT_DENY: each entry must be a port between 1 and 65535"
        " (not so: number 2, 3, 4, 5, 6)",
    ]


def test_lists_are_comma_separated() -> None:
    settings = load(
        DATASOURCE_HOST_GUARD="on",
        DATASOURCE_HOST_ALLOW=" 10.0.0.0/8,, DB.acme.test , 2001:db8::/32,8.8.8.8, db",
        DATASOURCE_PORT_DENY="22 , 6379",
    )
    assert entries_of(settings.datasource_host_allow) == (
        "10.0.0.0/8",
        "DB.acme.test",
        "2001:db8::/32",
        "8.8.8.8",
        "db",
    )
    assert ports_of(settings.datasource_port_deny) == {22, 6379}


def test_what_is_forbidden_does_not_lie_there_without_effect() -> None:
    assert refusals(DATASOURCE_HOST_DENY="8.8.8.8", DATASOURCE_PORT_DENY="22") == [
        "DATASOURCE_HOST_DENY: has no effect without DATASOURCE_HOST_GUARD=on",
        "DATASOURCE_PORT_DENY: has no effect without DATASOURCE_HOST_GUARD=on",
    ]
