"""Hosts and ports of a tenant's servers, as the Tenant Manager tells them: part of an address."""

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Final

PORTS: Final = range(1, 65536)

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}", re.ASCII)


def is_host(text: str) -> bool:
    """A name or an IP address without brackets: nothing else may stand where an address has it."""
    return is_ip6(text) or _NAME.fullmatch(text) is not None


def is_ip6(text: str) -> bool:
    """Without a zone, which is another machine's on each."""
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text
