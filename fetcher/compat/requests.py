"""A request in the names under which the Engine compares it (spec engine 17.1, at its end)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from fetcher.compat.names import SourceNames, normalized_field, normalized_table
from fetcher_engine import EngineError, ErrorCategory

C = TypeVar("C")

ALL_FIELDS: Final = ("*",)
"""A table's whole list of fields, where it asks for all of them (design section 5)."""

_UNKNOWN: Final = SourceNames("")


def normalized_request(
    mapped_fields: Mapping[str, Mapping[str, Sequence[str]]],
    filters: Mapping[str, Mapping[str, Mapping[str, C]]],
    sources: Mapping[str, SourceNames],
) -> tuple[dict[str, dict[str, tuple[str, ...]]], dict[str, dict[str, dict[str, C]]]]:
    """Fields and filters with tables and fields named as in a normalized snapshot.

    ``sources`` goes by config name; a missing one counts as of unknown type. Tables that become one
    join their fields, each once, in the order of their requested names; where one of them asks for
    all, all are asked for. Their conditions join too. Raise EngineError of category ``validation``
    when one field then has two different conditions.
    """
    fields = {
        config: _normalized_tables(tables, sources.get(config, _UNKNOWN))
        for config, tables in mapped_fields.items()
    }
    conditions = {
        config: _normalized_filters(config, tables, sources.get(config, _UNKNOWN))
        for config, tables in filters.items()
    }
    return fields, conditions


def _normalized_tables(
    tables: Mapping[str, Sequence[str]], source: SourceNames
) -> dict[str, tuple[str, ...]]:
    joined: dict[str, tuple[str, ...]] = {}
    for table in sorted(tables):
        name = normalized_table(table, source)
        asked = _each_once(normalized_field(field, source) for field in tables[table])
        known = joined.get(name, asked)
        everything = ALL_FIELDS in (asked, known)
        joined[name] = ALL_FIELDS if everything else _each_once((*known, *asked))
    return joined


def _each_once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _normalized_filters(
    config: str, tables: Mapping[str, Mapping[str, C]], source: SourceNames
) -> dict[str, dict[str, C]]:
    joined: dict[str, dict[str, C]] = {}
    for table in sorted(tables):
        name = normalized_table(table, source)
        conditions = joined.setdefault(name, {})
        for field, condition in tables[table].items():
            column = normalized_field(field, source)
            if not _is_same(conditions.setdefault(column, condition), condition):
                raise EngineError(
                    ErrorCategory.VALIDATION,
                    "one field has two different filter conditions",
                    source=config,
                    table=name,
                    column=column,
                )
    return joined


def _is_same(left: object, right: object) -> bool:
    """Whether two conditions ask the same of every column: ``1``, ``true`` and ``1.0`` do not."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_is_same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return type(left) is type(right) and repr(left) == repr(right)
