"""Credentials within a text that may be an address, or a list of them: ``user:password@`` and what
follows ``?`` or ``#``.

Judged broadly: a password may have any character, and drivers take more than RFC 3986 allows. What
is masked besides costs a look into the environment, what is left costs the password.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, unquote_plus

MASK: Final = "********"

_ADDRESS: Final = re.compile(r"(?:^|[\s,;]+)[A-Za-z][A-Za-z0-9+.-]*://")
"""Where an address begins: after a separator, so not within a password that holds ``://``."""
_ITEM: Final = re.compile(r"[^\s,;]+")
_USER: Final = re.compile(r"(?<![^\s,;])[^\s,;@:/]*:.*@|://.*@", re.DOTALL)
"""Of a text without a scheme: from the first item that has a colon. An address without a password
is one of mail."""
_USER_OF_ADDRESS: Final = re.compile(r"^.*@", re.DOTALL)
_MARK: Final = re.compile(r"[?&#]")
_QUERY: Final = re.compile(r"\?(?=[^?&#=\s]+=)")


def without_credentials(text: str) -> str:
    """The same with everything masked that may be a user, a password or a parameter's value."""
    return "".join(scheme + _masked(scheme, rest) for scheme, rest in _pieces(text))


def credentials_in(text: str) -> Iterator[str]:
    """The passwords that :func:`without_credentials` masks, and the same decoded; where a password
    ends or begins in more than one way, each of them."""
    for _, piece in _pieces(text):
        for password in _passwords(piece):
            yield from decoded(password)


def parameters_in(text: str) -> Iterator[str]:
    """What follows each ``?``, ``&`` and ``#`` of an address: ``name=value``, or no name at all."""
    for scheme, piece in _pieces(text):
        begin = _mark_of(scheme, piece).search(piece)
        if begin is not None:
            yield from _MARK.split(piece[begin.end() :])


def decoded(value: str) -> Iterator[str]:
    """As it is, and as those who take an address apart have it."""
    yield from dict.fromkeys((value, unquote(value), unquote_plus(value)))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Each scheme with what follows it; first what is ahead of all schemes, without one."""
    begins = list(_ADDRESS.finditer(text))
    ends = [*(each.start() for each in begins), len(text)]
    yield "", text[: ends[0]]
    for begin, end in zip(begins, ends[1:], strict=True):
        yield begin[0], text[begin.end() : end]


def _masked(scheme: str, piece: str) -> str:
    mark = _mark_of(scheme, piece)
    user = _USER_OF_ADDRESS if scheme else _USER
    shown = user.sub(f"{MASK}@", piece)
    begin = mark.search(shown)
    if begin is None:
        return shown
    parts = re.split(r"([?&#])", shown[begin.start() :])
    return shown[: begin.start()] + "".join(_masked_parameter(each) for each in parts)


def _mark_of(scheme: str, piece: str) -> re.Pattern[str]:
    """What parameters begin with: a name of something may have a ``#`` or ``&`` as well."""
    is_address = scheme or "://" in piece or _USER.search(piece)
    return _MARK if is_address else _QUERY


def _masked_parameter(parameter: str) -> str:
    """Nobody knows what it is where it has no name."""
    name, equals, value = parameter.partition("=")
    if not parameter.strip() or parameter in "?&#" or (equals and not value):
        return parameter
    return f"{name}={MASK}" if equals else MASK


def _passwords(piece: str) -> Iterator[str]:
    ends = [at for at, character in enumerate(piece) if character == "@"]
    for item in _ITEM.finditer(piece):
        within = [end for end in ends if item.start() < end < item.end()]
        after = [end for end in ends if end >= item.end()]
        # In a list of addresses a password ends within its item, unless it has a separator in it.
        for end in dict.fromkeys((*within, *after[:1], *after[-1:])):
            for colon in range(item.start(), min(end, item.end())):
                if piece[colon] == ":":
                    yield piece[colon + 1 : end]
