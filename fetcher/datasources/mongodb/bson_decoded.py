"""Documents without a common shape: decoded by the driver's C code and written by orjson.

Decoding makes a Python object of every value, which is what shapes avoid; it is still several times
as quick as reading element by element. What decoding or orjson would not write as the walker does
is turned into its own JSON text on the way, or refused, and then the walker reads the document.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import bson
import orjson
from bson import (
    Binary,
    Code,
    DatetimeMS,
    DBRef,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from bson.codec_options import CodecOptions, DatetimeConversion, TypeDecoder, TypeRegistry

from fetcher.datasources.mongodb.bson_walk import BsonWalker
from fetcher.datasources.mongodb.types import (
    DECIMAL128,
    binary_text,
    date_text,
    timestamp_text,
)
from fetcher_engine import encode_value

T = TypeVar("T")

_SMALLEST_PLAIN: Final = 1e-3
_LARGEST_PLAIN: Final = 1e15
"""Between these orjson writes a fraction as the Engine does (decision 019)."""


class _NotDecoded(Exception):
    """The document has what loses something by decoding: a `$ref` its order, a regex its flags."""


class BsonDecoder:
    """Writes documents for one request's options."""

    def __init__(self, walker: BsonWalker) -> None:
        self._walker = walker
        decoders: list[TypeDecoder] = [
            _decoder(float, _double),
            # orjson puts the keys of the outermost object in order, and what is inside is text
            _decoder(dict, _nested),
            _decoder(ObjectId, _object_id),
            _decoder(DatetimeMS, _date),
            _decoder(Decimal128, self._decimal),
            _decoder(bytes, _binary),
            _decoder(Binary, _binary),
            _decoder(Code, _code),
            _decoder(Timestamp, _timestamp),
            _decoder(MinKey, _min_key),
            _decoder(MaxKey, _max_key),
            _decoder(Regex, _refused),
            _decoder(DBRef, _refused),
        ]
        if walker.writes_bigint_as_text:
            decoders.append(_decoder(Int64, self._int64))
        self._options: CodecOptions[dict[str, Any]] = CodecOptions(
            document_class=dict,
            datetime_conversion=DatetimeConversion.DATETIME_MS,
            type_registry=TypeRegistry(decoders),
        )

    def rows(self, data: bytes) -> str | None:
        """The documents that lie one behind the other, as JSON objects joined by commas.

        None where the walker must read some of them, or is to say what is wrong with them.
        """
        try:
            documents = bson.decode_all(data, self._options)
            return orjson.dumps(documents, option=orjson.OPT_SORT_KEYS)[1:-1].decode()
        except Exception:  # noqa: BLE001 - whatever it is, the walker can say it
            return None

    def _decimal(self, value: Decimal128) -> orjson.Fragment:
        return orjson.Fragment(self._walker.decimal_cell(*DECIMAL128.unpack(value.bid)))

    def _int64(self, value: Int64) -> object:
        return orjson.Fragment(self._walker.int64_text(int(value)))


def _decoder(kind: type[T], write: Callable[[T], object]) -> TypeDecoder:
    class Decoder(TypeDecoder):
        @property
        def bson_type(self) -> type[T]:
            return kind

        def transform_bson(self, value: T) -> object:
            return write(value)

    return Decoder()


def _double(value: float) -> object:
    size = abs(value)
    if _SMALLEST_PLAIN <= size < _LARGEST_PLAIN:
        return int(value) if value.is_integer() else value
    return orjson.Fragment(encode_value(value))


def _nested(value: dict[str, Any]) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(value))


def _object_id(value: ObjectId) -> str:
    return value.binary.hex()


def _date(value: DatetimeMS) -> orjson.Fragment:
    return orjson.Fragment(date_text(int(value)))


def _binary(value: bytes) -> orjson.Fragment:
    return orjson.Fragment(binary_text(value))


def _code(value: Code) -> str:
    if value.scope is not None:
        raise _NotDecoded
    return str(value)


def _timestamp(value: Timestamp) -> orjson.Fragment:
    return orjson.Fragment(timestamp_text(value.inc, value.time))


def _min_key(_: MinKey) -> orjson.Fragment:
    return orjson.Fragment('{"$minKey":1}')


def _max_key(_: MaxKey) -> orjson.Fragment:
    return orjson.Fragment('{"$maxKey":1}')


def _refused(_: object) -> object:
    raise _NotDecoded
