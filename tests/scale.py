"""The size of a run: CI sizes by default, nightly ones by ``FETCHER_TEST_SCALE``."""

import os

import pytest


def scale_factor() -> float:
    """``FETCHER_TEST_SCALE`` as a positive factor, 1 where it is unset.

    Raises:
        ValueError: it is set to something that is no positive number.
    """
    text = os.environ.get("FETCHER_TEST_SCALE", "").strip()
    if not text:
        return 1.0
    factor = float(text)
    if not 0 < factor < float("inf"):
        message = f"FETCHER_TEST_SCALE must be a positive number, not {text!r}"
        raise ValueError(message)
    return factor


def scaled(count: int) -> int:
    """``count`` in this run's size, at least 1."""
    return max(1, round(count * scale_factor()))


IS_NIGHTLY = scale_factor() > 1


def nightly(why: str) -> pytest.MarkDecorator:
    """Of a test that is too long for CI, ``why`` it is; ``make faults`` or ``nightly`` runs it."""
    return pytest.mark.skipif(not IS_NIGHTLY, reason=f"nightly: {why}")
