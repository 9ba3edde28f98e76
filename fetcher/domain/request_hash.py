"""The request hash, by which equal requests are known (spec rest-api 9.4; design section 6)."""

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from fetcher.domain.jobs import JobOptions, Operator
from fetcher.domain.json_text import JsonTextError, dumps

# the layout of a double in the reference: plain between these powers of ten, else with an exponent
_PLAIN_FROM: Final = -6
_PLAIN_BELOW: Final = 21


def canonical_request(
    mapped_fields: Mapping[str, object],
    filters: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    options: JobOptions | None = None,
) -> str:
    """The hashed JSON. Raise JsonTextError for values that JSON cannot say.

    Arrays keep the order of the request. ``null`` in place of a source, table or condition's table
    map is kept, empty operators, filters, options and metadata are left out.
    """
    request: dict[str, object] = {"mappedFields": _sorted(mapped_fields)}
    if filters:
        request["filters"] = {
            source: _sorted_filters(tables) for source, tables in sorted(filters.items())
        }
    changed = _changed_options(options) if options is not None else {}
    if changed:
        request["options"] = changed
    document: dict[str, object] = {"dataRequest": request}
    if metadata:
        document["metadata"] = _sorted(metadata)
    return dumps(document, escape_html=True, number=canonical_number)


def request_hash(
    mapped_fields: Mapping[str, object],
    filters: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    options: JobOptions | None = None,
) -> str:
    """SHA-256 of :func:`canonical_request`, 64 lower-case hex digits."""
    text = canonical_request(mapped_fields, filters, metadata, options)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def canonical_number(number: int | Decimal) -> str:
    """The number's exact value in the layout of a double.

    Where a double's shortest form has the value, this is that form, so hashes agree with the
    reference's; every other number keeps the digits that a double would lose. Equal values have
    one form, different values never share one.
    """
    exact = Decimal(number)
    sign, digits, exponent = exact.as_tuple()
    if not isinstance(exponent, int):
        raise JsonTextError("NaN and infinities are no JSON")
    minus = "-" if sign else ""
    significant = "".join(map(str, digits)).strip("0")
    if not significant:
        return f"{minus}0"
    scale = exact.adjusted()
    if not _PLAIN_FROM <= scale < _PLAIN_BELOW:
        fraction = f".{significant[1:]}" if len(significant) > 1 else ""
        return f"{minus}{significant[0]}{fraction}e{scale:+d}"
    if scale < 0:
        return f"{minus}0.{'0' * (-scale - 1)}{significant}"
    whole = significant[: scale + 1].ljust(scale + 1, "0")
    fraction = significant[scale + 1 :]
    return f"{minus}{whole}.{fraction}" if fraction else f"{minus}{whole}"


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value


def _sorted_filters(tables: object) -> object:
    if not isinstance(tables, Mapping):
        return tables
    return {table: _sorted_fields(fields) for table, fields in sorted(tables.items())}


def _sorted_fields(fields: object) -> object:
    if not isinstance(fields, Mapping):
        return fields
    return {field: _ordered_condition(condition) for field, condition in sorted(fields.items())}


def _ordered_condition(condition: object) -> object:
    """A condition's operators in their fixed order; the reference reads ``null`` as none."""
    if not isinstance(condition, Mapping):
        return {}
    return {
        operator.value: _sorted(condition[operator.value])
        for operator in Operator
        if condition.get(operator.value)
    }


def _changed_options(options: JobOptions) -> dict[str, object]:
    default = JobOptions()
    changed: dict[str, object] = {}
    if options.bigint != default.bigint:
        changed["bigint"] = options.bigint
    if options.decimals != default.decimals:
        changed["decimals"] = options.decimals
    if options.limits:
        changed["limits"] = _sorted(options.limits)
    if options.values != default.values:
        changed["values"] = options.values
    return changed
