"""Strings in BSON that are not UTF-8: drivers write none, the server does not look."""

import bson
import pytest
from bson import Code, Regex

from fetcher.datasources.mongodb.bson_json import BsonWriter, document_starts
from fetcher.datasources.mongodb.bson_walk import InvalidText
from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions

DOCUMENTS = [
    {"_id": number, "fine": "h\u00e9llo", "v": {"w": [f'a?"{number}']}} for number in range(100)
]
OTHERS = [
    {"_id": 1, "v": Code("a?()")},
    {"_id": 2, "v": Code("a?()", {"x": "a?"})},
    {"_id": 3, "v": Regex("a?", "i")},
]


def rows(data: bytes, texts: Texts | None = None) -> str:
    writer = BsonWriter(JobOptions(), max_cell_bytes=1 << 20, texts=texts)
    return ",".join(writer.rows(data, document_starts(data)))


@pytest.mark.parametrize("broken", [0, 50, 99])
def test_by_default_the_field_is_named(broken: int) -> None:
    documents = [bson.encode(document) for document in DOCUMENTS]
    documents[broken] = documents[broken].replace(b"a?", b"a\xf3")
    with pytest.raises(InvalidText) as caught:
        rows(b"".join(documents))
    assert caught.value.args == ("v",)


@pytest.mark.parametrize("every", [1, 7, 100])
def test_what_is_invalid_is_replaced_and_counted(every: int) -> None:
    documents = [bson.encode(document) for document in DOCUMENTS]
    for number in range(0, 100, every):
        documents[number] = documents[number].replace(b"a?", b"a\xf3")
    texts = Texts(replaces=True)
    written = rows(b"".join(documents), texts)
    expected = [
        f'{{"_id":{number},"fine":"h\u00e9llo","v":{{"w":["a{sign}\\"{number}"]}}}}'
        for number in range(100)
        for sign in ("\ufffd" if number % every == 0 else "?")
    ]
    assert written == ",".join(expected)
    assert texts.take_replaced() == len(range(0, 100, every))


def test_wherever_text_may_stand() -> None:
    texts = Texts(replaces=True)
    data = b"".join(map(bson.encode, OTHERS)).replace(b"a?", b"a\xf3")
    assert rows(data, texts) == (
        '{"_id":1,"v":"a\ufffd()"},'
        '{"_id":2,"v":{"Code":"a\ufffd()","Scope":{"x":"a\ufffd"}}},'
        '{"_id":3,"v":{"Pattern":"a\ufffd","Options":"i"}}'
    )
    assert texts.take_replaced() == 4


def test_names_are_never_replaced() -> None:
    data = bson.encode({"_id": 1, "v": {"a?": 1, "b?": 2}})
    for name in (b"a?", b"b?"):
        data = data.replace(name, b"\xf3" + name[1:])
    with pytest.raises(InvalidText):
        rows(data, Texts(replaces=True))
