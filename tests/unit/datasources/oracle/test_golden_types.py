"""The golden matrix of Oracle's types, at the driver's edge: no server made these values."""

import pytest

from fetcher.datasources.oracle.types import LARGE, column_type
from scripts.types_document.golden import OPTION_SETS, GoldenValue, exact_json, matrix
from tests.unit.datasources.oracle.one_read import one_cell


def catalogue_of(value: GoldenValue) -> tuple[object, ...]:
    """Type, owner, length, precision and scale as ``ALL_TAB_COLUMNS`` has them."""
    name = value.declared if value.type == "any other built-in type" else value.type
    sent = value.sent
    return name, sent.get("owner"), 22, sent.get("precision"), sent.get("scale")


def fetched(value: GoldenValue) -> tuple[object, ...]:
    cell: object = value.sent["cell"]
    match value.sent.get("encoding"):
        case "hex":
            cell = bytes.fromhex(str(cell))
        case "float":
            cell = float(str(cell))
    name, owner, *_ = catalogue_of(value)
    kind = column_type(str(name), owner=str(owner) if owner else None).kind
    length = (str(len(cell)),) if kind in LARGE and isinstance(cell, str | bytes) else ()
    return cell, *length


@pytest.mark.parametrize(
    "value", matrix("oracle").values, ids=lambda value: f"{value.declared} {value.value}"
)
async def test_every_type_under_each_option(
    value: GoldenValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, options in OPTION_SETS.items():
        cell = await one_cell(monkeypatch, catalogue_of(value), *fetched(value), options=options)
        assert exact_json(cell) == exact_json(value.expected[name])
    assert (
        await one_cell(monkeypatch, catalogue_of(value), *(None for _ in fetched(value))) == "null"
    )
