"""Error texts that readiness shows without authentication (spec configuration 6.7)."""

import re
import string
from typing import Final

from fetcher.log_secrets import live_secrets

MAX_BYTES: Final = 512
_MAX_READ: Final = 64 * 1024
"""Far beyond what can be shown: a secret that is cut there is cut away."""

_WORD: Final = re.compile(r"\S+")
_PASSWORD_VALUE: Final = re.compile(r"(password|passwd|pwd)=[^&\s]*", re.IGNORECASE)
_NAME_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._~%!$&'()*+,;=-")


def safe_error_text(text: str) -> str:
    """The text without credentials, at most 512 bytes of UTF-8, trimmed.

    ``name:secret@`` and what stands between ``://`` and the last ``@`` of a word become ``***@``,
    the values of ``password=``, ``passwd=`` and ``pwd=`` become ``***``. Everything else is left as
    it is, but for the secrets that this process holds: a server may quote what it was sent. Takes
    time linear in the text, which may come from a hostile server.
    """
    text = live_secrets.masked(text[:_MAX_READ])
    without_userinfo = _WORD.sub(lambda word: _without_userinfo(word.group()), text)
    safe = _PASSWORD_VALUE.sub(lambda found: f"{found.group(1)}=***", without_userinfo)
    return safe.encode(errors="replace")[:MAX_BYTES].decode(errors="ignore").strip()


def _without_userinfo(word: str) -> str:
    if "@" not in word:
        return word
    scheme, separator, rest = word.partition("://")
    if separator and "@" in rest:
        word = f"{scheme}://***@{rest.rpartition('@')[2]}"
    *before_at, tail = word.split("@")
    return "@".join([*map(_without_secret, before_at), tail])


def _without_secret(before_at: str) -> str:
    """One stretch that ends before an ``@``; a secret holds no ``/``, so look behind the last."""
    head, slash, credentials = before_at.rpartition("/")
    colon = credentials.find(":")
    while 0 <= colon < len(credentials) - 1:
        if colon > 0 and credentials[colon - 1] in _NAME_CHARACTERS:
            name = credentials[:colon]
            kept = name[: len(name) - _name_length(name)]
            return f"{head}{slash}{kept}***"
        colon = credentials.find(":", colon + 1)
    return before_at


def _name_length(text: str) -> int:
    """How many characters at the end of ``text`` can belong to a user's name."""
    length = 0
    for character in reversed(text):
        if character not in _NAME_CHARACTERS:
            break
        length += 1
    return length
