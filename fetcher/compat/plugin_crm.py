"""The rules of ``plugin_crm``, a source whose collections are split and whose fields are sealed
(spec engine 17.8, spec datasources 15).

A logical collection ``holders`` lies in one physical collection an organisation: ``holders_<id>``.
Its personal fields are encrypted; what can be looked for lies beside them as a keyed hash.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from fetcher.compat.names import MONGODB
from fetcher_engine import EngineError, FailureType, SourceFailure, Stage

CONFIG_NAME: Final = "plugin_crm"

SEARCH_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "document": "search.document",
        "name": "search.name",
        "banking_details.account": "search.banking_details_account",
        "banking_details.iban": "search.banking_details_iban",
        "contact.primary_email": "search.contact_primary_email",
        "contact.secondary_email": "search.contact_secondary_email",
        "contact.mobile_phone": "search.contact_mobile_phone",
        "contact.other_phone": "search.contact_other_phone",
    }
)
"""Where the hash of an encrypted field lies. Filters on the field go there."""

UNSEARCHABLE_OPERATORS: Final = frozenset({"like", "gt", "gte", "lt", "lte", "between"})
"""A hash has neither parts nor an order."""

_PRESENCE: Final = frozenset({"is_null", "not_null"})
"""Answered by the field itself: what is sealed is there, what is null is not sealed."""

ENCRYPTED_PATHS: Final = (
    "document",
    "name",
    "contact.primary_email",
    "contact.secondary_email",
    "contact.mobile_phone",
    "contact.other_phone",
    "banking_details.account",
    "banking_details.iban",
    "legal_person.representative.name",
    "legal_person.representative.document",
    "legal_person.representative.email",
    "natural_person.mother_name",
    "natural_person.father_name",
)

HASH_KEY_MISSING: Final = "hash_key_missing"
ENCRYPT_KEY_MISSING: Final = "encrypt_key_missing"
ENCRYPT_KEY_UNUSABLE: Final = "encrypt_key_unusable"
DECRYPTION_FAILED: Final = "decryption_failed"
"""Followed by the number of the record: ``decryption_failed record_3``."""

_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "driver_missing": "FET-0055",
        HASH_KEY_MISSING: "FET-0057",
        ENCRYPT_KEY_MISSING: "FET-0058",
        ENCRYPT_KEY_UNUSABLE: "FET-0064",
        DECRYPTION_FAILED: "FET-0065",
    }
)
NOT_RESOLVED_CODE: Final = "FET-0054"
_NO_COLLECTION_CODE: Final = "FET-0059"

_SEALED_FIELDS: Final = frozenset(ENCRYPTED_PATHS)
_HASHED_FIELDS: Final = MappingProxyType({place: field for field, place in SEARCH_FIELDS.items()})

_ORGANISATION_ID = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{24}",
    re.ASCII | re.IGNORECASE,
)


def is_crm(config_name: str) -> bool:
    """By the exact name, whatever the type."""
    return config_name == CONFIG_NAME


def is_crm_source(config_name: str, source_type: str) -> bool:
    """Whether extraction reads it as CRM; of another type it is an ordinary source."""
    return is_crm(config_name) and source_type == MONGODB


def extracted_collections(
    logical: str, physical_names: Iterable[str], organisations: Collection[str] | None = None
) -> tuple[str, ...]:
    """All that are read for a logical collection, sorted; none: it is not found.

    Where some end in an organisation's id (a UUID or 24 hex digits), only those: ``alias`` does not
    swallow ``alias_history_<id>``. A collection of exactly this name is not among them.
    ``organisations``, where they are given, are the only ones that are read.
    """
    prefix = f"{logical}_"
    if organisations is not None:
        return tuple(
            sorted({f"{prefix}{each}" for each in organisations}.intersection(physical_names))
        )
    found = sorted({name for name in physical_names if name.startswith(prefix)})
    of_organisations = [name for name in found if _ORGANISATION_ID.fullmatch(name, len(prefix))]
    return tuple(of_organisations or found)


def search_filters(
    filters: Mapping[str, object], hashed: Callable[[str], str], *, table: str
) -> dict[str, dict[str, tuple[object, ...]]]:
    """One collection's filters as the database can answer them: by field, then by operator.

    On an encrypted field the hash is compared: non-empty texts go through ``hashed``, all other
    values stay. Whether a field is null it tells itself. Raise SourceFailure ``invalid_filter``,
    which names table and field, for what neither can answer: an operator that hashes have no answer
    to, a value of an encrypted field that has no hash, two conditions that become one.
    """
    rewritten: dict[str, dict[str, tuple[object, ...]]] = {}
    for field, condition in filters.items():
        for place, operator, values in _rewritten(field, condition, hashed, table):
            there = rewritten.setdefault(place, {})
            if operator in there:
                raise _refused(table, field)
            there[operator] = values
    return rewritten


def asked_field(place: str) -> str:
    """The field behind the hash that lies in ``place``; any other place is the field itself."""
    return _HASHED_FIELDS.get(place, place)


def _rewritten(
    field: str, condition: object, hashed: Callable[[str], str], table: str
) -> Iterator[tuple[str, str, tuple[object, ...]]]:
    if not isinstance(condition, Mapping) or not condition:
        raise _refused(table, field)
    if not all(map(_is_list, condition.values())):
        raise _refused(table, field)
    for operator, values in condition.items():
        if field not in _SEALED_FIELDS or operator in _PRESENCE:
            yield field, operator, tuple(values)
        elif field in SEARCH_FIELDS and operator not in UNSEARCHABLE_OPERATORS:
            yield SEARCH_FIELDS[field], operator, _hashed_values(field, values, hashed, table)
        else:
            raise _refused(table, field)


def _hashed_values(
    field: str, values: Iterable[object], hashed: Callable[[str], str], table: str
) -> tuple[object, ...]:
    try:
        return tuple(hashed(each) if isinstance(each, str) and each else each for each in values)
    except UnicodeEncodeError:
        pass
    raise SourceFailure(Stage.QUERY, "invalid_filter_value", table=table, column=field)


def _is_list(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def _refused(table: str, field: str) -> SourceFailure:
    return SourceFailure(Stage.QUERY, "invalid_filter", table=table, column=field)


def known_paths() -> tuple[str, ...]:
    """The fields that every logical collection may have: sealed ones, hashes, and their parents."""
    return tuple(
        sorted({each for path in (*ENCRYPTED_PATHS, *_HASHED_FIELDS) for each in _line(path)})
    )


def failure_code(failure: EngineError) -> str | None:
    """The code of spec datasources 15.6 for a failure of this source; None: it has no own one."""
    if any(
        (each.type, each.config_name) == (FailureType.TABLE_NOT_FOUND, CONFIG_NAME)
        for each in failure.failures
    ):
        return _NO_COLLECTION_CODE
    word, _, _ = (failure.reason or "").partition(" ")
    return _CODES.get(word)


def decrypted_paths(fields: Iterable[str]) -> tuple[str, ...]:
    """The encrypted paths that a selection shows, itself or by a parent; none: no key is needed.

    ``*`` shows all, and so does no field: of a document source that means whole documents. A dotted
    field outside the list (``address.city``) shows none.
    """
    selected = frozenset(fields)
    if not selected or "*" in selected:
        return ENCRYPTED_PATHS
    return tuple(path for path in ENCRYPTED_PATHS if not selected.isdisjoint(_line(path)))


def _line(path: str) -> Iterable[str]:
    """The path and its parents."""
    parts = path.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
