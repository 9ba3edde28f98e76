"""The W3C trace context: what is taken from outside, and how it is told."""

import pytest

from fetcher.domain.terminal_event import trace_headers
from fetcher.domain.trace_context import TraceContext, trace_context, trace_context_in

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_parts_of_a_parent() -> None:
    found = trace_context(PARENT, "a=1,b=2")
    assert found == TraceContext(PARENT, "a=1,b=2")
    assert (found.trace_id, found.span_id, found.is_sampled) == (TRACE, SPAN, True)
    assert not TraceContext(PARENT[:-1] + "0").is_sampled


@pytest.mark.parametrize(
    "hostile",
    [
        None,
        b"00-" + TRACE.encode(),
        7,
        "",
        PARENT + "\n",
        PARENT + "\r\nX-Evil: 1",
        " " + PARENT,
        PARENT.upper(),
        PARENT + "-x",
        "0" * 1_000_000,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        PARENT.replace("0a", "\u0660a", 1),
    ],
)
def test_what_names_no_trace_is_none(hostile: object) -> None:
    assert trace_context(hostile, "a=1") is None


def test_a_later_version_is_told_as_ours() -> None:
    assert trace_context(f"cc-{TRACE}-{SPAN}-01") == TraceContext(PARENT)


@pytest.mark.parametrize("state", [None, "", "x" * 513, "a=1\r\nX: 1", "a=\0", "é=1", 5, b"a=1"])
def test_state_that_cannot_be_told_is_dropped_alone(state: object) -> None:
    assert trace_context(PARENT, state) == TraceContext(PARENT)


def test_of_a_message_any_case_and_text_alone() -> None:
    assert trace_context_in({"TraceParent": PARENT, "TRACESTATE": "a=1"}) == TraceContext(
        PARENT, "a=1"
    )
    assert trace_context_in({"traceparent": bytearray(PARENT, "ascii")}) is None
    assert trace_context_in({"traceparent": "junk", "Traceparent": PARENT}) == TraceContext(PARENT)
    assert trace_context_in({"jobId": "x", "tracestate": "a=1"}) is None


def test_spellings_of_messages() -> None:
    context = TraceContext(PARENT, "a=1")
    assert context.capitalised() == {"Traceparent": PARENT, "Tracestate": "a=1"}
    assert trace_headers(context) == {
        "traceparent": bytearray(PARENT, "ascii"),
        "tracestate": bytearray(b"a=1"),
        "Traceparent": PARENT,
        "Tracestate": "a=1",
    }
    assert trace_headers(TraceContext(PARENT)) == {
        "traceparent": bytearray(PARENT, "ascii"),
        "Traceparent": PARENT,
    }
