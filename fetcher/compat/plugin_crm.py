"""The rules of ``plugin_crm``, a source whose collections are split and whose fields are sealed
(spec engine 17.8, spec datasources 15).

A logical collection ``holders`` lies in one physical collection an organisation: ``holders_<id>``.
Its personal fields are encrypted; what can be looked for lies beside them as a keyed hash.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fetcher.compat.names import MONGODB
from fetcher_engine import SourceFailure, Stage

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

_ORGANISATION_ID = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{24}",
    re.ASCII | re.IGNORECASE,
)


def is_crm(config_name: str) -> bool:
    """Whether validation maps its collections: by the exact name, whatever the type."""
    return config_name == CONFIG_NAME


def is_crm_source(config_name: str, source_type: str) -> bool:
    """Whether extraction reads it as CRM; of another type it is an ordinary source."""
    return is_crm(config_name) and source_type == MONGODB


@dataclass(frozen=True, slots=True)
class PhysicalMapping:
    """Fields by physical collection. ``logical_names`` leads back to what is displayed."""

    fields: Mapping[str, Sequence[str]]
    logical_names: Mapping[str, str]


def physical_mapping(
    config_name: str, fields: Mapping[str, Sequence[str]], physical_names: Iterable[str]
) -> PhysicalMapping:
    """What validation looks up for what was asked for, where it is CRM; else the same.

    A name that no collection has, nor a prefix of one, stays: its table is not found then. Where
    two names lead to one collection their fields are joined, sorted, and the first name is shown.
    """
    if not is_crm(config_name):
        return PhysicalMapping(fields, {})
    known = frozenset(physical_names)
    joined: dict[str, Sequence[str]] = {}
    logical_names: dict[str, str] = {}
    for logical in sorted(fields):
        physical = _validated_collection(logical, known)
        logical_names.setdefault(physical, logical)
        if physical in joined:
            joined[physical] = tuple(sorted({*joined[physical], *fields[logical]}))
        else:
            joined[physical] = tuple(fields[logical])
    return PhysicalMapping(joined, logical_names)


def extracted_collections(logical: str, physical_names: Iterable[str]) -> tuple[str, ...]:
    """All that are read for a logical collection, sorted; none: it is not found.

    Where some end in an organisation's id (a UUID or 24 hex digits), only those: ``alias`` does not
    swallow ``alias_history_<id>``. Unlike in validation, a collection of exactly this name is not
    among them.
    """
    prefix = f"{logical}_"
    found = sorted({name for name in physical_names if name.startswith(prefix)})
    of_organisations = [name for name in found if _ORGANISATION_ID.fullmatch(name, len(prefix))]
    return tuple(of_organisations or found)


def _validated_collection(logical: str, known: frozenset[str]) -> str:
    if logical in known:
        return logical
    return next(iter(extracted_collections(logical, known)), logical)


def search_filters(
    filters: Mapping[str, Mapping[str, Sequence[object]]],
    hashed: Callable[[str], str],
    *,
    table: str,
) -> dict[str, dict[str, tuple[object, ...]]]:
    """One collection's filters as the database can answer them: by field, then by operator.

    On an encrypted field the hash is compared: non-empty texts go through ``hashed``, all other
    values stay. Raise SourceFailure ``invalid_filter``, which names table and field, for an
    operator that hashes cannot answer, and where two fields become one.
    """
    rewritten: dict[str, dict[str, tuple[object, ...]]] = {}
    for field, condition in filters.items():
        searched = SEARCH_FIELDS.get(field)
        if searched is not None and UNSEARCHABLE_OPERATORS.intersection(condition):
            raise SourceFailure(Stage.QUERY, "invalid_filter", table=table, column=field)
        place = searched or field
        if place in rewritten:
            raise SourceFailure(Stage.QUERY, "invalid_filter", table=table, column=field)
        rewritten[place] = {
            operator: tuple(
                hashed(value) if searched and isinstance(value, str) and value else value
                for value in values
            )
            for operator, values in condition.items()
        }
    return rewritten


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
