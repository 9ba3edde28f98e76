"""What a caller asks for when it creates a job, and the rules that need no look outside.

The order of the checks is the Wire's (spec rest-api 9.2, steps 2 to 6); what they check is the
spec's with its improvements and design sections 6 and 7. Every text names the offending member.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from fetcher.compat.names import MAX_NAME_CHARACTERS
from fetcher.domain.errors import FetcherError
from fetcher.domain.job_filters import checked_filters
from fetcher.domain.jobs import LIMIT_NAMES, Filters, JobOptions, MappedFields
from fetcher.domain.json_text import dumps
from fetcher.domain.json_values import JsonObject, JsonValue, holds_nul_key
from fetcher.domain.member_paths import member
from fetcher.domain.request_hash import request_hash
from fetcher_engine import Limits

MAX_METADATA_BYTES = 64 * 1024
ALL_FIELDS = "*"

AskedFields: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
AskedFilters: TypeAlias = Mapping[
    str, Mapping[str, Mapping[str, Mapping[str, Sequence[JsonValue]]]]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """A request as sent, in shape but not judged. ``None`` is what was left out."""

    mapped_fields: AskedFields | None
    filters: AskedFilters = field(default_factory=dict)
    metadata: JsonObject | None
    options: JobOptions | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOrder:
    """A request that can become a job if its connections allow it.

    ``mapped_fields`` names each field once; ``requested_fields`` is what was sent, which is what
    the request hash covers.
    """

    mapped_fields: MappedFields
    requested_fields: MappedFields
    filters: Filters
    metadata: JsonObject
    options: JobOptions
    request_id: str

    @property
    def source(self) -> str:
        """The product that asks, as it is compared (decisions: without case)."""
        return str(self.metadata.get("source", "")).strip().lower()


@dataclass(frozen=True, slots=True)
class JudgedOrder:
    asked: CheckedOrder
    request_hash: str


def judged_order(order: JobOrder, *, ceilings: Limits, options_enabled: bool) -> JudgedOrder:
    """What can be said of a request without a look outside; raise as :func:`checked`."""
    asked = checked(order, ceilings=ceilings, options_enabled=options_enabled)
    digest = request_hash(asked.requested_fields, asked.filters, asked.metadata, asked.options)
    return JudgedOrder(asked, digest)


def checked(order: JobOrder, *, ceilings: Limits, options_enabled: bool) -> CheckedOrder:
    """Raise ``FET-0402`` or ``FET-0401``; the first violation in the Wire's order decides."""
    if order.mapped_fields is None:
        raise FetcherError(
            "FET-0402",
            "Missing Fields in Request",
            "dataRequest.mappedFields is required",
            fields={"mappedFields": "is required"},
        )
    options = order.options or JobOptions()
    limits = _lowered(ceilings, options)
    requested = _requested_fields(order.mapped_fields, limits)
    metadata = _checked_metadata(order.metadata)
    filters = checked_filters(order.filters, asked=requested, limits=limits)
    _check_options(order.options, ceilings=ceilings, enabled=options_enabled)
    return CheckedOrder(
        mapped_fields={
            source: {table: tuple(dict.fromkeys(names)) for table, names in tables.items()}
            for source, tables in requested.items()
        },
        requested_fields=requested,
        filters=filters,
        metadata=metadata,
        options=options,
        request_id=order.request_id,
    )


def _requested_fields(asked: AskedFields, limits: Limits) -> MappedFields:
    root = "dataRequest.mappedFields"
    if not asked:
        _refuse(f"{root} names no data source")
    if len(asked) > limits.max_datasources:
        _refuse(f"{root} names more than {limits.max_datasources} data sources")
    for source, tables in asked.items():
        path = member(root, source)
        check_name(source, path)
        if not tables:
            _refuse(f"{path} names no table")
        if len(tables) > limits.max_tables_per_datasource:
            _refuse(f"{path} names more than {limits.max_tables_per_datasource} tables")
        for table, names in tables.items():
            _check_fields(names, table, path=member(path, table), limits=limits)
    return {s: {t: tuple(names) for t, names in tables.items()} for s, tables in asked.items()}


def _check_fields(names: Sequence[str], table: str, *, path: str, limits: Limits) -> None:
    check_name(table, path)
    distinct = dict.fromkeys(names)
    if not distinct:
        _refuse(f"{path} names no field")
    if len(distinct) > limits.max_fields_per_table:
        _refuse(f"{path} names more than {limits.max_fields_per_table} fields")
    for index, name in enumerate(names):
        check_name(name, f"{path}[{index}]")
    if ALL_FIELDS in distinct and len(distinct) > 1:
        _refuse(f'{path} names "{ALL_FIELDS}" beside other fields')


def check_name(name: str, path: str) -> None:
    """Raise ``FET-0401`` for what no source, table or field can be called."""
    if not name.strip():
        _refuse(f"{path} is a blank name")
    if "\0" in name:
        _refuse(f"{path} is a name with a NUL character")
    if len(name) > MAX_NAME_CHARACTERS:
        _refuse(f"{path} is a name of more than {MAX_NAME_CHARACTERS} characters")


def _checked_metadata(metadata: JsonObject | None) -> JsonObject:
    missing = "Missing Required Field"
    if metadata is None:
        raise FetcherError("FET-0402", missing, "metadata is required")
    source = metadata.get("source")
    if source is None:
        raise FetcherError("FET-0402", missing, "metadata.source is required")
    if not isinstance(source, str) or not source.strip():
        raise FetcherError("FET-0402", "Invalid Field Value", "metadata.source must be a text")
    for key in metadata:
        path = member("metadata", key)
        if key == "error" or key.startswith("terminalEvent"):
            _refuse(f"{path} is reserved")
        if "." in key or key.startswith("$"):
            # The record store addresses members by dotted paths and operators by a dollar sign.
            _refuse(f"{path}: keys must not hold a dot or begin with a dollar sign")
    if len(dumps(metadata).encode()) > MAX_METADATA_BYTES:
        _refuse(f"metadata must have at most {MAX_METADATA_BYTES} bytes")
    if holds_nul_key(metadata):
        _refuse("metadata: keys must not hold a NUL character")
    return metadata


def lowered_limits(options: JobOptions) -> Limits | None:
    """``dataRequest.options.limits`` under the Engine's own names; None where none is lowered."""
    if not options.limits:
        return None
    return Limits(**{LIMIT_NAMES[name]: value for name, value in options.limits.items()})  # type: ignore[arg-type] # checked when the job was created; the Engine checks each again


def _lowered(ceilings: Limits, options: JobOptions) -> Limits:
    """The limits that count for this request; what would raise one is judged with the options."""
    lowered = {name: options.limits.get(name, 0) for name in LIMIT_NAMES}
    return ceilings.clamped_by(
        Limits(
            max_datasources=int(lowered["maxDatasources"]),
            max_tables_per_datasource=int(lowered["maxTablesPerDatasource"]),
            max_fields_per_table=int(lowered["maxFieldsPerTable"]),
        )
    )


CHOICES = {
    "values": ("compatible", "natural"),
    "bigint": ("number", "string"),
    "decimals": ("string", "number"),
}


def _check_options(options: JobOptions | None, *, ceilings: Limits, enabled: bool) -> None:
    if options is None:
        return
    root = "dataRequest.options"
    if not enabled:
        _refuse(f"{root} is switched off here")
    for name, allowed in CHOICES.items():
        if getattr(options, name) not in allowed:
            _refuse(f"{root}.{name} must be one of {', '.join(allowed)}")
    for name, value in options.limits.items():
        ceiling = getattr(ceilings, LIMIT_NAMES[name])
        if not 0 < value <= ceiling:
            _refuse(f"{root}.limits.{name} must be above 0 and at most {ceiling:.15g}")


def _refuse(message: str) -> NoReturn:
    raise FetcherError("FET-0401", "Invalid Data Request", message)
