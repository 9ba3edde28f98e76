"""The check of a cancelled reader, where the reader itself fails."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fetcher.domain.connections import SourceType
from fetcher_engine import EngineError, ErrorCategory, Stage
from tests.verify import run


class UnreachableEngine:
    async def plan_extraction(self, *_: object) -> None:
        raise EngineError(ErrorCategory.CONNECT, "m", stage=Stage.TCP, reason="refused")


class Owner:
    async def values(self, _: str) -> set[int]:
        return set()


async def test_reader_that_fails_is_told_as_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def engines() -> AsyncIterator[Any]:
        yield SimpleNamespace(engine_for=lambda *_: UnreachableEngine())

    monkeypatch.setattr(run, "engines", engines)
    place = SimpleNamespace(
        owner=Owner(), made=["fv_wide_1"], kind=SourceType.MYSQL, connection=None
    )
    with pytest.raises(EngineError) as failed:
        await run._cancelling(cast("Any", place), run.Scale())
    assert failed.value.reason == "refused"
