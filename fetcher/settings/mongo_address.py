"""Where MongoDB is: the address as the driver takes it, and whether it asks for TLS."""

import re
from typing import Final
from urllib.parse import parse_qsl, quote

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class AddressInvalid(ValueError):
    """The text is no address; says which kind, never the text itself (it may hold a password)."""


def compose_uri(
    *,
    scheme: str,
    host: str,
    port: int | None = None,
    user: str = "",
    password: str = "",
    parameters: str = "",
) -> str:
    """One address from its parts (spec configuration 2.2, the composition of the Manager).

    User and password are percent-encoded; without both there is no ``@``, without a port no ``:``.
    ``parameters`` is ``k=v&k=v``, already encoded.
    """
    credentials = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
    place = f"{host}:{port}" if port else host
    query = f"/?{parameters}" if parameters else ""
    return f"{scheme}://{credentials}{place}{query}"


def scheme_of(uri: str) -> str:
    """In lower case. Raise AddressInvalid for what is no address."""
    scheme = _SCHEME.match(uri)
    if scheme is None:
        raise AddressInvalid("readyz: parse mongodb connection string")
    return scheme[1].lower()


def uses_tls(uri: str) -> bool:
    """Whether the address asks for TLS (spec configuration 4.1); empty text does not.

    An explicit ``tls`` or ``ssl`` of ``false`` wins over everything, then one that is true counts,
    then the scheme ``mongodb+srv``. The first value of a repeated parameter counts; names and
    values ignore case, as the driver's do. Raise AddressInvalid for what is no address.
    """
    if not uri:
        return False
    scheme = scheme_of(uri)
    if refuses_tls(uri):
        return False
    return scheme == "mongodb+srv" or any(said in ("true", "1") for said in _said_of_tls(uri))


def refuses_tls(uri: str) -> bool:
    """Whether the address turns TLS off by its own word."""
    return any(said in ("false", "0") for said in _said_of_tls(uri))


def _said_of_tls(uri: str) -> tuple[str, ...]:
    answers: dict[str, str] = {}
    for name, value in parse_qsl(uri.partition("?")[2]):
        if name.lower() in ("tls", "ssl"):
            answers.setdefault(name.lower(), value.lower())
    return tuple(answers.values())


def hosts_of(uri: str) -> tuple[str, ...]:
    """The hosts that an address names, without ports and brackets."""
    places = uri.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    return tuple(host for place in places.split(",") if (host := _without_port(place)))


def _without_port(place: str) -> str:
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.partition(":")[0]
