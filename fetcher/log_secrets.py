"""Secret values that this process holds, taken out of everything that it logs, and of what
readiness tells.

The last line: nothing of ours logs a secret. A text of a library may hold one all the same.
"""

import base64
import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import quote, quote_plus

from structlog.typing import EventDict, WrappedLogger

MASK: Final = "***"
SHORTEST: Final = 6
"""Shorter values are left: they are in many words, and masking these would tell the value."""
MOST_PASSED: Final = 2000
"""So many passwords of connections are remembered, and as many of tenants' places: those used
last. The oldest make way a twentieth of them at a time, since the search is made anew then."""
FEW_FORMS: Final = 600
"""More than these are not searched for one by one: first for how they begin, which costs the same
however many there are, then for those that begin so."""
DEPTH: Final = 8
"""Of containers in a record; what lies deeper is masked whole."""


class LiveSecrets:
    """The settings' secrets for as long as the process runs, and those that pass through it.

    Any thread may tell it of secrets while any other masks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lasting: dict[str, tuple[str, ...]] = {}
        self._passing: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._of_places: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._search = _Search(())
        """Replaced whole, never changed, so it is read without the lock."""

    def hold(self, secrets: Iterable[str]) -> None:
        """These stay."""
        found = {secret: _forms(secret) for secret in secrets if len(secret) >= SHORTEST}
        with self._lock:
            self._lasting |= found
            self._search_anew()

    def note(self, secret: str) -> None:
        """A connection's password in use; it makes way once many others came after it."""
        self._note(secret, self._passing)

    def note_of_place(self, secret: str) -> None:
        """One of a tenant's place, which makes way for no connection's: those are as many as
        anybody's tenant likes."""
        self._note(secret, self._of_places)

    def _note(self, secret: str, noted: OrderedDict[str, tuple[str, ...]]) -> None:
        if len(secret) < SHORTEST:
            return
        with self._lock:
            if secret in noted:
                noted.move_to_end(secret)
                return
            noted[secret] = _forms(secret)
            if len(noted) <= MOST_PASSED + MOST_PASSED // 20:
                self._search = self._search.also_for(noted[secret])
                return
            while len(noted) > MOST_PASSED:
                noted.popitem(last=False)
            self._search_anew()

    def _search_anew(self) -> None:
        known = (*self._lasting.values(), *self._of_places.values(), *self._passing.values())
        self._search = _Search({form for forms in known for form in forms})

    def masked(self, text: str) -> str:
        return self._search.masked(text)

    def masked_value(self, value: object, depth: int = DEPTH) -> object:
        """The same in any value of a record: what is neither text, number nor container is judged
        as it would be shown."""
        if isinstance(value, str):
            return self.masked(value)
        if value is None or isinstance(value, int | float):
            return value
        if depth == 0:
            return MASK
        if isinstance(value, Mapping):
            return {
                self._masked_key(key): self.masked_value(each, depth - 1)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.masked_value(each, depth - 1) for each in value]
        return self._masked_object(value)

    def _masked_object(self, value: object) -> object:
        try:
            shown = repr(value)
        except Exception:  # noqa: BLE001 - a library's object; who logs it must not fail for it
            return f"<{type(value).__name__}>"
        masked = self.masked(shown)
        return value if masked == shown else masked

    def _masked_key(self, key: object) -> object:
        """What JSON can have for one."""
        if isinstance(key, str):
            return self.masked(key)
        if key is None or isinstance(key, int | float):
            return key
        return self.masked(str(self.masked_value(key)))

    def processor(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """For structlog, after tracebacks were made text."""
        # All texts at once: nearly every record is clean, and the search is what costs.
        are_clean = self._search.finds_nothing(
            "\n".join(v for v in event.values() if isinstance(v, str))
        )
        return {
            name: value if are_clean and isinstance(value, str) else self.masked_value(value)
            for name, value in event.items()
        }


Heads: TypeAlias = dict[str, tuple[str, ...]]
"""Forms by how they begin."""


class _Search:
    """Of texts for any of ``forms``, none of which is shorter than :data:`SHORTEST`."""

    def __init__(self, forms: Collection[str], heads: Heads | None = None) -> None:
        self._forms = tuple(forms)
        self._heads = heads
        if len(self._forms) > FEW_FORMS and heads is None:
            self._heads = _by_head(self._forms, {})

    def also_for(self, forms: Sequence[str]) -> "_Search":
        heads = None if self._heads is None else _by_head(forms, self._heads)
        return _Search((*self._forms, *forms), heads)

    def finds_nothing(self, text: str) -> bool:
        """A record without a secret is what costs: no any() over a generator for the few."""
        for form in self._forms_like(text):  # noqa: SIM110
            if form in text:
                return False
        return True

    def masked(self, text: str) -> str:
        found = [form for form in self._forms_like(text) if form in text]
        # The longest first: a secret may be a part of another, whose rest would be left.
        for form in sorted(found, key=_by_length):
            text = text.replace(form, MASK)
        return text

    def _forms_like(self, text: str) -> Sequence[str]:
        """Those that may be in it: a text that begins like one of them is not searched for all."""
        if self._heads is None:
            return self._forms
        begins = {text[at : at + SHORTEST] for at in range(len(text) - SHORTEST + 1)}
        return [form for head in self._heads.keys() & begins for form in self._heads[head]]


def _forms(secret: str) -> tuple[str, ...]:
    """As it is, and as others may quote it: in an address, as Python or JSON shows it, also one
    within the other, in hexadecimal, and in base64 behind whatever stands before it."""
    lines = [line for line in secret.splitlines() if len(line) >= SHORTEST]
    shown = _shown(secret)
    twice = [form for each in shown for form in _shown(each)]
    raw = secret.encode(errors="surrogatepass")
    forms = {secret, quote(raw, safe=""), quote(raw), quote_plus(raw), *shown, *twice, *lines}
    return tuple(forms | {raw.hex(), raw.hex().upper(), *_in_base64(raw)})


def _shown(text: str) -> tuple[str, ...]:
    return (
        repr(text)[1:-1],
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
    )


def _in_base64(raw: bytes) -> Iterator[str]:
    """The characters that depend on nothing else: each stands for 6 bits, and what comes before may
    end at any byte of three."""
    for before in range(3):
        for altchars in (b"+/", b"-_"):
            text = base64.b64encode(bytes(before) + raw, altchars).decode()
            yield text[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]


def _by_head(forms: Iterable[str], known: Heads) -> Heads:
    """These and the known ones, which are left as they are."""
    heads = known.copy()
    for form in forms:
        head = form[:SHORTEST]
        heads[head] = (*heads.get(head, ()), form)
    return heads


def _by_length(form: str) -> tuple[int, str]:
    return -len(form), form


live_secrets: Final = LiveSecrets()
"""Of this process: bootstrap tells it what it holds."""
