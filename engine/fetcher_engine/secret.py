"""A text that shows itself only when asked (spec 19.2)."""

import hmac
from typing import NoReturn

REDACTED = "[REDACTED]"


class Secret:
    """Holds a secret text. No text form, copy, pickle or JSON of it reveals what it holds."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]  # a hash would be an oracle; typeshed wants a method

    def __init__(self, value: str = "") -> None:
        """Raise TypeError for what is no text."""
        given: object = value
        if not isinstance(given, str):
            raise TypeError("a secret is a text")
        self._value = given

    def reveal(self) -> str:
        """The secret itself; keep it no longer than the call that needs it."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # a text that is no Unicode must not fail here: the exception would hold it
        ours, theirs = (s._value.encode(errors="surrogatepass") for s in (self, other))
        return hmac.compare_digest(ours, theirs)

    def __repr__(self) -> str:
        return REDACTED

    def __format__(self, format_spec: str) -> str:
        return format(REDACTED, format_spec)

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")
