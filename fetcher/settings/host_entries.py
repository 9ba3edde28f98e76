"""Lists of hosts and ports in settings: ``10.0.0.0/8, 2001:db8::7, db.acme.test``; ``22, 6379``."""

import ipaddress
import re
from collections.abc import Callable
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


def entries_of(text: str) -> tuple[str, ...]:
    """Comma separated, blanks around an entry and empty ones dropped."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def checked_hosts(text: str) -> str:
    """Raise ValueError naming by number the entries that are no network, address or name."""
    return _checked(text, _is_host_entry, "an address, a network without host bits, or a host name")


def checked_ports(text: str) -> str:
    """Raise ValueError naming by number the entries that are no port."""
    return _checked(text, is_port, "a port between 1 and 65535")


def ports_of(text: str) -> frozenset[int]:
    return frozenset(int(entry) for entry in entries_of(text))


def _checked(text: str, is_entry: Callable[[str], bool], wanted: str) -> str:
    wrong = [str(at) for at, entry in enumerate(entries_of(text), 1) if not is_entry(entry)]
    if wrong:
        raise ValueError(f"each entry must be {wanted} (not so: number {', '.join(wrong)})")
    return text


def _is_host_entry(entry: str) -> bool:
    try:
        return ipaddress.ip_network(entry) is not None and "%" not in entry
    except ValueError:
        labels = entry.lower().split(".")
    return (
        len(entry) <= 253
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])
    )


def is_port(entry: str) -> bool:
    """A port number in plain digits, as ``int`` reads it: not ``²``, which is a digit too."""
    return entry.isascii() and entry.isdigit() and len(entry) <= 5 and 0 < int(entry) < 65536
