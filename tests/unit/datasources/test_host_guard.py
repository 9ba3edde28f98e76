"""Host safety: the rows of spec datasources 19.4, ranges of 13.3 and 13.4, and the lists."""

import socket
from typing import Any

import pytest
import structlog

from fetcher.datasources.addresses import resolve
from fetcher.datasources.host_guard import HostGuard, HostList, HostRefused, Rule
from fetcher_engine import SourceFailure

GUARD = HostGuard()
PUBLIC = ("8.8.8.8",)


def rule_of(host: str, *addresses: str, guard: HostGuard = GUARD, port: int = 5432) -> Rule | None:
    try:
        guard.judge(host, port, addresses)
    except HostRefused as refused:
        return refused.rule
    return None


def test_refusal_tells_nothing_but_itself() -> None:
    with pytest.raises(HostRefused) as refused:
        GUARD.judge("10.9.8.7", 5432, ["10.9.8.7"])
    assert str(refused.value) == "dns: host_refused"


@pytest.mark.parametrize(
    "literal",
    [
        "127.0.0.1",
        "::1",
        "10.9.8.7",
        "172.31.0.4",
        "192.168.7.7",
        "169.254.169.254",
        "100.64.1.1",
        "0.0.0.0",
        "198.51.100.9",
        "240.0.0.1",
        "fe80::9",
        "fd12::1",
        "::ffff:10.1.1.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        # 13.3
        "::",
        "0.1.2.3",
        "127.255.0.1",
        "172.16.0.1",
        "192.0.0.8",
        "192.0.2.1",
        "198.19.255.255",
        "203.0.113.1",
        "224.0.0.1",
        "239.1.1.1",
        "255.255.255.255",
        "2001:db8::1",
        "100::1",
        "ff02::1",
        "fc00::1",
        "febf::1",
        # 13.4
        "64:ff9b:1::1",
        "64:ff9b::a00:1",
        "2002:a09:807::1",
        "2001::1",
        "2001:0:808:808::1",
        "::7f00:1",
        "::808:808",
        "fec0::1",
        "3fff::1",
        "5f00::1",
        "192.88.99.1",
        "2001:2::1",
        "2001:10::1",
        "::ffff:0:a00:1",
        "::ffff:127.0.0.1",
    ],
)
def test_literal_in_a_refused_range(literal: str) -> None:
    assert rule_of(literal, literal) is Rule.RANGE
    assert rule_of("db.example.net", literal) is Rule.RANGE
    assert rule_of("db.example.net", "8.8.8.8", literal) is Rule.RANGE
    assert GUARD.refuses_as_written(literal, 5432)


def test_rule_that_refused_a_literal_is_logged() -> None:
    with structlog.testing.capture_logs() as logged:
        assert GUARD.refuses_as_written("10.1.2.3", 5432)
        assert not GUARD.refuses_as_written("8.8.8.8", 5432)
    assert [(entry["event"], entry["rule"]) for entry in logged] == [("host_refused", "range")]


@pytest.mark.parametrize(
    "literal",
    [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "198.20.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2a00:1450:4001::1",
    ],
)
def test_public_literal_passes(literal: str) -> None:
    assert rule_of(literal, literal) is None
    assert not GUARD.refuses_as_written(literal, 5432)


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "LOCALHOST",
        "a.localhost",
        "db.internal",
        "x.local",
        "svc.cluster.local",
        "metadata.google.internal",
        "Metadata.GCP.internal",
        "metadata.azure.internal",
    ],
)
@pytest.mark.parametrize("addresses", [(), PUBLIC])
def test_refused_name_is_refused_wherever_it_leads(name: str, addresses: tuple[str, ...]) -> None:
    assert rule_of(name, *addresses) is Rule.NAME


@pytest.mark.parametrize(
    "host",
    [
        "",
        "LOCALHOST.",
        "db.example.net.",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "1.2.3.4.5",
        "[::1]",
        "::1%lo",
        "fe80::1%eth0",
        "8.8.8.8:80",
        " db.example.net",
        "db_1.example.net",
        "db..example.net",
        "-db.example.net",
        "db-.example.net",
        "a" * 64 + ".example.net",
        "a." * 127 + "net",
        "１２７.0.0.1",  # noqa: RUF001 - full-width digits
        "127。0。0。1",
        "localhost。",
        "ｌocalhost",  # noqa: RUF001 - full-width letter
        "db.example.net\0",
        "db.example.net\n",
        "db@example.net",
        "db/example.net",
    ],
)
def test_other_than_strict_spellings_are_refused(host: str) -> None:
    assert rule_of(host, *PUBLIC) is Rule.FORM
    assert rule_of(host) is Rule.FORM


@pytest.mark.parametrize(
    "host", ["db.example.net", "DB.Example.NET", "1db.example.net", "a.b", "db", "bücher.example"]
)
def test_name_of_a_public_address_passes_and_an_unknown_one_too(host: str) -> None:
    assert rule_of(host, *PUBLIC) is None
    assert rule_of(host) is None


def test_ideographic_stops_hide_no_name() -> None:
    assert rule_of("metadata。google。internal", *PUBLIC) is Rule.NAME


def test_one_refused_address_is_enough() -> None:
    assert rule_of("db.example.net", "8.8.8.8", "10.0.0.3") is Rule.RANGE


def test_address_that_is_none_is_refused() -> None:
    assert rule_of("db.example.net", "nonsense") is Rule.RANGE


# --- at the parse stage -----------------------------------------------------------------------


def test_host_is_judged_as_it_is_written_without_blanks_around_it() -> None:
    assert GUARD.refuses_as_written(" 127.0.0.1 ", 5432)
    assert GUARD.refuses_as_written(" LocalHost ", 5432)
    assert not GUARD.refuses_as_written(" db.example.net ", 5432)


@pytest.mark.parametrize("text", ["", "db_1", "127.1", "0x7f000001", "a..b", "\uff4cocalhost"])
def test_text_that_is_no_host_is_left_to_the_rules_of_hosts(text: str) -> None:
    assert not GUARD.refuses_as_written(text, 5432)


def test_name_is_refused_as_written_only_where_no_address_could_open_it() -> None:
    names = ["db.internal", "legacy.example.net", "records.example.net"]
    deny, own = HostList.of(["legacy.example.net"]), HostList.of(["records.example.net"])
    guard = HostGuard(deny=deny, own=own)
    assert [guard.refuses_as_written(name, 5432) for name in names] == [True] * 3
    guard = HostGuard(allow=HostList.of(["10.1.0.0/16"]), deny=deny, own=own)
    assert [guard.refuses_as_written(name, 5432) for name in names] == [False, False, True]
    guard = HostGuard(allow=HostList.of(names), deny=deny, own=own)
    assert [guard.refuses_as_written(name, 5432) for name in names] == [False] * 3


def test_denied_port_is_refused_as_written_on_any_name() -> None:
    guard = HostGuard(allow=HostList.of(["10.1.0.0/16"]), denied_ports=frozenset({6379}))
    assert guard.refuses_as_written("db.example.net", 6379)
    assert not guard.refuses_as_written("db.example.net", 6380)


# --- lists of the operator --------------------------------------------------------------------


def test_allowed_network_opens_its_addresses_and_the_names_that_lead_there() -> None:
    guard = HostGuard(allow=HostList.of(["10.1.0.0/16", "fd00:1::/32"]))
    assert rule_of("10.1.2.3", "10.1.2.3", guard=guard) is None
    assert rule_of("::ffff:10.1.2.3", "::ffff:10.1.2.3", guard=guard) is None
    assert rule_of("64:ff9b::a01:203", "64:ff9b::a01:203", guard=guard) is None
    assert rule_of("db.internal", "10.1.2.3", "fd00:1::7", guard=guard) is None
    assert rule_of("db.internal", "10.1.2.3", "8.8.8.8", guard=guard) is Rule.NAME
    assert rule_of("db.example.net", "10.1.2.3", "10.2.0.1", guard=guard) is Rule.RANGE
    assert not guard.refuses_as_written("10.1.2.3", 5432)


def test_allowed_name_opens_itself_alone() -> None:
    guard = HostGuard(allow=HostList.of(["DB.internal"]))
    assert rule_of("db.INTERNAL", "10.1.2.3", guard=guard) is None
    assert rule_of("other.internal", "10.1.2.3", guard=guard) is Rule.NAME
    assert rule_of("10.1.2.3", "10.1.2.3", guard=guard) is Rule.RANGE


def test_denied_names_and_networks() -> None:
    guard = HostGuard(deny=HostList.of(["legacy.example.net", "8.8.0.0/16"]))
    assert rule_of("Legacy.example.net", "9.9.9.9", guard=guard) is Rule.DENIED
    assert rule_of("db.example.net", "8.8.8.8", guard=guard) is Rule.DENIED
    assert rule_of("64:ff9b::808:808", "64:ff9b::808:808", guard=guard) is Rule.DENIED
    assert rule_of("db.example.net", "9.9.9.9", guard=guard) is None


def test_allow_wins_over_deny() -> None:
    entries = HostList.of(["db.example.net", "8.8.8.0/24"])
    guard = HostGuard(allow=entries, deny=entries)
    assert rule_of("db.example.net", "9.9.9.9", guard=guard) is None
    assert rule_of("8.8.8.8", "8.8.8.8", guard=guard) is None


def test_own_infrastructure_is_refused_by_name_and_by_address() -> None:
    own = HostList.of(["mongo.acme.test", "9.9.9.9", "10.1.0.9"])
    guard = HostGuard(own=own, allow=HostList.of(["10.1.0.0/16"]))
    assert rule_of("Mongo.acme.test", "8.8.8.8", guard=guard) is Rule.OWN
    assert rule_of("mongo.acme.test", guard=guard) is Rule.OWN
    assert rule_of("alias.example.net", "9.9.9.9", guard=guard) is Rule.OWN
    assert rule_of("10.1.0.9", "10.1.0.9", guard=guard) is Rule.OWN, "inside an allowed network"
    assert rule_of("10.1.0.8", "10.1.0.8", guard=guard) is None


@pytest.mark.parametrize("entry", ["mongo.acme.test", "10.1.0.9"])
def test_own_infrastructure_that_is_allowed_exactly_passes(entry: str) -> None:
    own = HostList.of(["10.1.0.9", "mongo.acme.test"])
    guard = HostGuard(own=own, allow=HostList.of(["10.1.0.9", "mongo.acme.test"]))
    assert rule_of(entry, "10.1.0.9", guard=guard) is None


def test_denied_port_is_refused_for_everybody() -> None:
    guard = HostGuard(denied_ports=frozenset({6379}), allow=HostList.of(["8.8.8.8"]))
    assert rule_of("8.8.8.8", "8.8.8.8", guard=guard, port=6379) is Rule.PORT
    assert rule_of("8.8.8.8", "8.8.8.8", guard=guard, port=5432) is None


# --- in the one place of resolution -----------------------------------------------------------


def answering(*rounds: tuple[str, ...]) -> Any:
    """A resolver whose answers change."""
    left = list(rounds)

    def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        addresses = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    return getaddrinfo


async def test_what_was_judged_is_what_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebinding: the second answer would be a private address, and nobody asks for it."""
    monkeypatch.setattr(socket, "getaddrinfo", answering(("8.8.8.8",), ("10.0.0.3",)))
    assert await resolve("db.example.net", 5432, judge=GUARD.judge) == ("8.8.8.8",)
    with pytest.raises(HostRefused):
        await resolve("db.example.net", 5432, judge=GUARD.judge)


async def test_name_that_nobody_knows_passes_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering(()))
    with pytest.raises(SourceFailure) as caught:
        await resolve("db.example.net", 5432, judge=GUARD.judge)
    assert caught.value.reason == "dns"
    with pytest.raises(HostRefused):
        await resolve("db.internal", 5432, judge=GUARD.judge)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1%lo", "127.1", "localhost"])
async def test_real_resolver_opens_no_way_around(host: str) -> None:
    with pytest.raises(HostRefused):
        await resolve(host, 5432, judge=GUARD.judge)
