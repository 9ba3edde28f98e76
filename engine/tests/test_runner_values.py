"""Values and names that have no form in JSON (spec 21.9, 11.3)."""

from typing import Any

import pytest

from fetcher_engine import ErrorCategory, RowBatch

from .hosts import Host, direct_of, host_of
from .loops import every_loop
from .plans import batches_of, execute, one_step, run_plan
from .refusals import leaky, refuses

pytestmark = every_loop


def cycle() -> object:
    endless: list[object] = []
    endless.append(endless)
    return endless


class Hostile:
    """A driver's object that fails however it is touched."""

    def __repr__(self) -> str:
        raise leaky()

    def __getattribute__(self, name: str) -> Any:
        raise leaky()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda: None, "not_encodable"),
        (cycle(), "not_encodable"),
        ({1.5: 1}, "not_encodable"),
        ({True: 1}, "not_encodable"),
        (object(), "not_encodable"),
        (Hostile(), "not_encodable"),
        ("\ud800", "invalid_text"),
        ({"k": ["\udfff"]}, "invalid_text"),
    ],
    ids=["function", "cycle", "float key", "bool key", "object", "hostile", "surrogate", "nested"],
)
def test_value_without_a_json_form_fails_and_its_place_is_named(value: object, reason: str) -> None:
    host = host_of({"a": {"t": [{"ok": 1, "x": 1}, {"ok": 1, "x": value}]}})
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result") as caught:
        execute(host)
    error = caught.value
    assert (error.source, error.table, error.column) == ("a", "t", "x")
    assert error.reason == reason
    assert "Hostile" not in str(error)
    assert set(host.close_counts()) == {1}


@pytest.mark.parametrize(
    ("value", "text"),
    [(float("nan"), b'"NaN"'), (float("inf"), b'"Infinity"'), (float("-inf"), b'"-Infinity"')],
)
def test_number_that_json_lacks_is_a_text(value: float, text: bytes) -> None:
    """Design section 6 replaces spec 21.9 and 11.3, where it failed the run."""
    host = host_of({"a": {"t": [{"x": value}]}})
    assert direct_of(execute(host)).data == b'{"a":{"t":[{"x":' + text + b"}]}}"


def test_row_that_is_no_mapping_fails() -> None:
    host = Host({"a": batches_of(RowBatch("t", [("x", 1)]))})  # type: ignore[list-item]  # wrong on purpose
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result") as caught:
        run_plan(host, one_step({"t": ("x",)}))
    assert (caught.value.table, caught.value.column) == ("t", None)


def test_name_that_is_no_unicode_fails() -> None:
    host = host_of({"a": {"\ud800": []}})
    with refuses(ErrorCategory.INTERNAL, "failed to serialize extraction result"):
        run_plan(host, one_step({"\ud800": ("x",)}))
