"""Which hosts may be dialled on a tenant's behalf (spec datasources, section 13).

Pure rules, but for one line in the log. The guard judges a name together with every address it
resolved to, and what it let pass is what is dialled: nobody resolves a second time.
"""

import ipaddress
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self, TypeAlias

import structlog

from fetcher.domain.errors import HOST_REFUSED
from fetcher_engine import SourceFailure, Stage

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

log = structlog.get_logger(__name__)


class Rule(StrEnum):
    """Why a host was refused; for logs, never for the caller."""

    FORM = "form"
    PORT = "port"
    NAME = "name"
    RANGE = "range"
    DENIED = "denied"
    OWN = "own"


class HostRefused(SourceFailure):
    """Tells nothing but that it was refused; ``rule`` is for the operator's log."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(Stage.DNS, HOST_REFUSED)
        self.rule = rule


_NAMES: Final = frozenset(
    {
        "localhost",
        "metadata.google.internal",
        "metadata.gcp.internal",
        "metadata.azure.internal",
    }
)
_SUFFIXES: Final = (".localhost", ".local", ".internal", ".cluster.local")

_REFUSED: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # a platform's own service behind a public address
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/96",  # unspecified, loopback, IPv4-compatible
        "64:ff9b:1::/48",  # NAT64 of one's own: where the IPv4 address lies is not said
        "::ffff:0:0:0/96",  # IPv4-translated
        "100::/64",
        "2001::/32",  # Teredo
        "2001:2::/48",
        "2001:10::/28",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_MAX_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class HostList:
    """An operator's list of names and networks."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Each entry is a network, an address, or else a name."""
        names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry))
            except ValueError:
                names.add(entry.lower())
        return cls(frozenset(names), tuple(networks))

    def holds(self, address: Address) -> bool:
        return any(each in network for each in _spellings(address) for network in self.networks)

    def names_exactly(self, address: Address) -> bool:
        single = (network for network in self.networks if network.num_addresses == 1)
        return any(each in network for each in _spellings(address) for network in single)


class HeldHosts:
    """Hosts that are ours for a while: those of tenants, who come and go. Whoever holds one counts,
    so that one tenant's end opens nothing of another's."""

    def __init__(self) -> None:
        self._held: Counter[str | Address] = Counter()

    @contextmanager
    def held(self, entries: Iterable[str]) -> Iterator[None]:
        """Each entry is an address or else a name."""
        ours = {literal_of(entry) or own_name(entry) for entry in entries}
        self._held.update(ours)
        try:
            yield
        finally:
            self._held -= Counter(ours)

    def has_name(self, name: str) -> bool:
        return name in self._held

    def holds(self, address: Address) -> bool:
        return any(each in self._held for each in _spellings(address))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGuard:
    """``allow`` wins over every refusal of a name or an address, but for the operator's ``own``.

    The hosts of ``own`` (its record store, broker …) and of ``tenants`` are let pass only where
    ``allow`` has exactly that name or that address, not by a wider network. Denied ports are denied
    everywhere.
    """

    allow: HostList = field(default_factory=HostList)
    deny: HostList = field(default_factory=HostList)
    own: HostList = field(default_factory=HostList)
    tenants: HeldHosts = field(default_factory=HeldHosts, compare=False)
    denied_ports: frozenset[int] = frozenset()

    def judge(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """Raise HostRefused unless the host and all its addresses may be dialled.

        ``addresses`` is empty for a name that nobody knows: then the name alone is judged.
        """
        if rule := self._broken_rule(host, port, addresses):
            raise HostRefused(rule)

    def refuses_as_written(self, host: str, port: int) -> bool:
        """Whether a host may never be dialled, wherever its name leads: nobody looks it up.

        A name that is no host's is not refused here: other rules say what is wrong with it. The
        rule goes to the log, as that of a stored connection does.
        """
        rule = self._rule_as_written(host.strip(), port)
        if rule is not None:
            log.info("host_refused", rule=rule.value)
        return rule is not None

    def _rule_as_written(self, host: str, port: int) -> Rule | None:
        literal = literal_of(host)
        if literal is not None:
            return self._broken_rule(str(literal), port, [str(literal)])
        rule = self._broken_rule(host, port, [])
        # the name of an allowed address passes, whatever it is
        may_lead_to_allowed = bool(self.allow.networks) and rule in (Rule.NAME, Rule.DENIED)
        return None if rule is Rule.FORM or may_lead_to_allowed else rule

    def _broken_rule(self, host: str, port: int, addresses: Sequence[str]) -> Rule | None:
        name = strict_host(host)
        if name is None:
            return Rule.FORM
        if port in self.denied_ports:
            return Rule.PORT
        return None if name in self.allow.names else self._place_rule(name, addresses)

    def _place_rule(self, name: str, addresses: Sequence[str]) -> Rule | None:
        found = [literal_of(text.partition("%")[0]) for text in addresses]
        known = [address for address in found if address is not None]
        if len(known) < len(found):
            return Rule.RANGE
        is_own_name = name in self.own.names or self.tenants.has_name(name)
        if is_own_name or any(self._is_own(address) for address in known):
            return Rule.OWN
        strange = [address for address in known if not self.allow.holds(address)]
        if known and not strange:
            return None
        return self._name_rule(name) or next(filter(None, map(self._address_rule, strange)), None)

    def _name_rule(self, name: str) -> Rule | None:
        if name in self.deny.names:
            return Rule.DENIED
        return Rule.NAME if name in _NAMES or name.endswith(_SUFFIXES) else None

    def _address_rule(self, address: Address) -> Rule | None:
        if self.deny.holds(address):
            return Rule.DENIED
        return Rule.RANGE if is_refused(address) else None

    def _is_own(self, address: Address) -> bool:
        is_own = self.own.holds(address) or self.tenants.holds(address)
        return is_own and not self.allow.names_exactly(address)


def is_refused(address: Address) -> bool:
    """Whether it lies in a range that no public database has (spec 13.3 and 13.4)."""
    inner = _spellings(address)[-1]
    return any(inner in network for network in _REFUSED)


def own_name(text: str) -> str:
    """A name of our own as :func:`strict_host` spells a source's, which has no dot at its end."""
    name = text.rstrip(".")
    return strict_host(name) or name.lower()


def literal_of(text: str) -> Address | None:
    """An address literal; one with a zone (``::1%lo``) is none."""
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def strict_host(text: str) -> str | None:
    """The host in lower case and ASCII, None for one that has another spelling than the strict one.

    Some resolvers read ``127.1``, ``0x7f000001`` and full-width digits as addresses: whatever is
    neither a name (RFC 1123, its last label no number) nor a plain address literal is refused.
    """
    if literal_of(text) is not None:
        return text.lower()
    if not unicodedata.is_normalized("NFKC", text):
        return None
    try:
        # the codec that the resolver uses: what it makes of the name is what is looked up
        name = text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    labels = name.split(".")
    if len(name) > _MAX_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    return None if _NUMBER.fullmatch(labels[-1]) else name


def _spellings(address: Address) -> tuple[Address, ...]:
    """The address, and behind it the IPv4 address that it stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return (address,) if inner is None else (address, inner)
