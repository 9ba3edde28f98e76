"""The golden matrix of BSON types, from the bytes of their documents."""

from typing import Any

import bson
import pytest
from bson import json_util
from bson.codec_options import DatetimeConversion
from bson.json_util import JSONMode, JSONOptions

from fetcher.datasources.mongodb.bson_json import BsonWriter
from scripts.types_document.golden import OPTION_SETS, GoldenValue, exact_json, matrix

_EXTENDED = JSONOptions(
    json_mode=JSONMode.CANONICAL, datetime_conversion=DatetimeConversion.DATETIME_MS
)


def bson_of(value: GoldenValue) -> Any:
    """The value of canonical Extended JSON as the driver's own type."""
    return json_util.loads(f'{{"v":{value.value}}}', json_options=_EXTENDED)["v"]


def document_of(value: GoldenValue) -> bytes:
    if not value.sent:
        return bson.encode({"v": bson_of(value)})
    element = bytes([value.sent["type"]]) + b"v\0" + bytes.fromhex(value.sent["bytes"])
    return (len(element) + 5).to_bytes(4, "little") + element + b"\0"


@pytest.mark.parametrize("value", matrix("mongodb").values, ids=lambda value: value.value)
def test_every_type_under_each_option(value: GoldenValue) -> None:
    data = document_of(value)
    for name, options in OPTION_SETS.items():
        # by the walker first, then by the shape that it has taught
        rows = BsonWriter(options, max_cell_bytes=1000).rows(
            data * 3, [0, len(data), 2 * len(data)]
        )
        assert [exact_json(row)["v"] for row in rows] == [exact_json(value.expected[name])] * 3
