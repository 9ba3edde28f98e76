"""The table of spec datasources 10.6 in its new form: a value of each BSON type and its JSON."""

from typing import NamedTuple

from bson import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)


class Case(NamedTuple):
    name: str
    value: object
    json: str


_UUID = bytes.fromhex("6f9619ff8b86d011b42d00c04fc964ff")

GOLDEN = (
    Case("double", 1.5, "1.5"),
    Case("whole_double", 100.0, "100"),
    Case("large_double", 1e300, "1e+300"),
    Case("small_double", 1e-7, "1e-7"),
    Case("negative_zero", -0.0, "-0"),
    Case("nan", float("nan"), '"NaN"'),
    Case("infinity", float("inf"), '"Infinity"'),
    Case("minus_infinity", float("-inf"), '"-Infinity"'),
    Case("int32", -(2**31), "-2147483648"),
    Case("int64", Int64(9007199254740993), "9007199254740993"),
    Case("smallest_int64", Int64(-(2**63)), "-9223372036854775808"),
    Case("decimal", Decimal128("12.50"), '"12.50"'),
    Case("decimal_exponent", Decimal128("1E+3"), '"1E+3"'),
    Case("decimal_scale", Decimal128("-0.000"), '"-0.000"'),
    Case(
        "decimal_digits",
        Decimal128("12345678901234567890.123456789"),
        '"12345678901234567890.123456789"',
    ),
    Case("decimal_nan", Decimal128("NaN"), '"NaN"'),
    Case("decimal_infinity", Decimal128("-Infinity"), '"-Infinity"'),
    Case("string", 'héllo "x" \\ \n', '"héllo \\"x\\" \\\\ \\n"'),
    Case("string_with_nul", "a\0b", '"a\\u0000b"'),
    Case("true", True, "true"),
    Case("false", False, "false"),
    Case("null", None, "null"),
    Case("object_id", ObjectId("64b7f0c2a1d3e4f5a6b7c8d9"), '"64b7f0c2a1d3e4f5a6b7c8d9"'),
    Case("date", DatetimeMS(1933222028123), '"2031-04-06T06:07:08.123Z"'),
    Case("date_of_a_second", DatetimeMS(-1000), '"1969-12-31T23:59:59Z"'),
    Case("first_date", DatetimeMS(-62_135_596_800_000), '"0001-01-01T00:00:00Z"'),
    Case("last_date", DatetimeMS(253_402_300_799_999), '"9999-12-31T23:59:59.999Z"'),
    Case("date_beyond", DatetimeMS(253_402_300_800_000), '"253402300800000"'),
    Case("date_before", DatetimeMS(-62_135_596_800_001), '"-62135596800001"'),
    Case("uuid", Binary(_UUID, 4), '"6f9619ff-8b86-d011-b42d-00c04fc964ff"'),
    Case("legacy_uuid", Binary(_UUID, 3), '"6f9619ff-8b86-d011-b42d-00c04fc964ff"'),
    Case("sixteen_bytes", Binary(_UUID, 0), '"6f9619ff-8b86-d011-b42d-00c04fc964ff"'),
    Case("binary", Binary(b"\xde\xad\xbe", 0), '"deadbe"'),
    Case("empty_binary", Binary(b"", 0), '""'),
    Case("document", {"b": {"a": 1}, "a": []}, '{"b":{"a":1},"a":[]}'),
    Case("array", [[1, "2"], {"x": None}], '[[1,"2"],{"x":null}]'),
    Case("regex", Regex("^a", "i"), '{"Pattern":"^a","Options":"i"}'),
    Case("timestamp", Timestamp(1931234567, 1), '{"T":1931234567,"I":1}'),
    Case("code", Code("f()"), '"f()"'),
    Case("scoped_code", Code("f()", {"x": 1}), '{"Code":"f()","Scope":{"x":1}}'),
    Case("min_key", MinKey(), '{"$minKey":1}'),
    Case("max_key", MaxKey(), '{"$maxKey":1}'),
)
