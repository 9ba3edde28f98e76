"""What is JSON by RFC 8259, and what is not."""

import json
import random
import tracemalloc

import pytest

from fetcher.datasources.mysql.strict_json import MAX_DEPTH, is_json

LARGE = b" " * 1_100_000
"""What follows is not parsed, but gone through by its grammar."""

VALID = [
    b"0",
    b"-0",
    b"1e400",
    b"-1.50E+03",
    b'""',
    b'"\\u00e9\\"\\\\\\/\\b\\f\\n\\r\\t\\ud800"',
    b"true",
    b" [ ] ",
    b"\t{\r}\n",
    b"[[],{},[[]],{}]",
    b'{"a":[1,2.50,{"b":null}],"a":"x"}',
    b'[1, "a" , {"b" : [ 1 , {} ] , "c":2}, null ]',
    b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
    b'{"a":' * 500 + b"1e400" + b"}" * 500,
    b"[" + b"1," * 10_000 + b"1]",
    b"[" + b'{"a":1},' * 10_000 + b"[]]",
]
INVALID = [
    b"",
    b"  ",
    b"1.",
    b".5",
    b"01",
    b"+1",
    b"1e",
    b"- 1",
    b"1 2",
    b"NaN",
    b"Infinity",
    b"tru",
    b"truefalse",
    b"'a'",
    b'"a',
    b'"\\x"',
    b'"\\u12g4"',
    b'"\t"',
    b'"\x00"',
    b"\xef\xbb\xbf1",
    b"\x0b1",
    b"1\x00",
    b"[",
    b"]",
    b"[1,]",
    b"[,1]",
    b"[1 2]",
    b"[1}",
    b"{]",
    b'{"a"}',
    b'{"a":}',
    b'{"a":1,}',
    b"{1:2}",
    b'{"a" 1}',
    b'{"a":1 "b":2}',
    b"[1],[2]",
    b"[1]]",
    b"1,2",
    b"/**/1",
    b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    b"[" * 100_000,
]


@pytest.mark.parametrize("before", [b"", LARGE])
def test_what_is_json(before: bytes) -> None:
    assert [each for each in VALID if not is_json(before + each)] == []


@pytest.mark.parametrize("before", [b"", LARGE])
def test_what_is_none(before: bytes) -> None:
    assert [each for each in INVALID if is_json(before + each)] == []


def test_grammar_and_parser_agree() -> None:
    chance = random.Random(20311130)  # noqa: S311 - the same documents at every run
    alphabet = '0123456789.-+eE"\\/bfnrtu{}[]:, \n\x01tné'
    seeds = ['{"a":[1,2.5,-3e10,"x\\n",true],"b":{"c":[]}}', '[[[]],{"k":[{}]},0]', '"\\u00e9"']
    wrong = []
    taken = 0
    for _ in range(3000):
        text = list(chance.choice(seeds))
        for _ in range(chance.randint(0, 2)):
            place, kind = chance.randrange(len(text)), chance.randrange(3)
            text[place : place + min(kind, 1)] = [] if kind == 2 else [chance.choice(alphabet)]
        document = "".join(text).encode()
        # the parser refuses 1e400: the grammar judges then
        for one in (document, b"[1e400,%b]" % document):
            expected = _is_strict(one)
            taken += expected
            if is_json(one) != expected:
                wrong.append(one)
    assert wrong == []
    assert 1000 < taken < 5000


def _is_strict(document: bytes) -> bool:
    try:
        json.loads(document, parse_int=str, parse_float=str, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(constant: str) -> object:
    raise ValueError(constant)


ESCAPES = b'\\"' * 4_000_000


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b'"%b"' % ESCAPES, True),
        (b'"%b\\x"' % ESCAPES, False),
        (b'{"%b" : 1}' % ESCAPES, True),
        (b"[%b1]" % (b'"\\n\\n",' * 1_000_000), True),
    ],
    ids=["a text", "a wrong text", "a name", "many texts"],
)
def test_large_texts_of_escapes_cost_no_memory(document: bytes, expected: bool) -> None:
    """A pattern keeps each repetition of a group that it may have to go back over."""
    tracemalloc.start()
    try:
        assert is_json(document) is expected
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * 1024 * 1024
