"""How properties of decoders draw: several cases an example."""

from typing import Final, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

AT_ONCE: Final = 10
"""To make an example costs hypothesis a hundred times what it costs to judge it, and one of several
cases a third of as many examples."""


def several(cases: st.SearchStrategy[T]) -> st.SearchStrategy[list[T]]:
    return st.lists(cases, min_size=AT_ONCE, max_size=AT_ONCE)
