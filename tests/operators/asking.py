"""A filter's way through the whole product: a request over HTTP, a job, the opened result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fetcher.domain.json_text import dumps
from tests.e2e.cluster import PRODUCT, Answer, Api, opened
from tests.operators.rows import TABLE

BUNDLE: Final = 10
"""Connections to one database, so that one job asks it so many questions."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: with rows, or with an error's safe parts."""

    ids: tuple[int, ...] | None
    error: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A database registered under several names, and its table as requests call it."""

    api: Api
    folder: Path
    names: Sequence[str]
    table: str = TABLE

    def post(self, filters: Sequence[object]) -> Answer:
        """Ask for the ids of the rows, by one name a filter; numbers keep every digit."""
        asked = dict(zip(self.names, filters, strict=False))
        data = {
            "mappedFields": {name: {self.table: ["id"]} for name in asked},
            "filters": {name: {self.table: where} for name, where in asked.items()},
        }
        body = {"dataRequest": data, "metadata": {"source": PRODUCT}}
        return self.api.call("POST", "/v1/fetcher", raw=dumps(body).encode())

    def whole_rows(self, fields: Sequence[str], where: object) -> list[Mapping[str, Any]]:
        """The rows of one job that asks for these fields."""
        name = self.names[0]
        asked = {name: {self.table: fields}}
        posted = self.api.post_job(asked, {name: {self.table: where}})
        assert posted.status == 202, posted.body
        job = self.api.wait_for_job(posted.body["jobId"])
        assert job["status"] == "completed", job["error"]
        (rows,) = opened(self.folder, job["id"])[name].values()
        found: list[Mapping[str, Any]] = rows
        return found

    def rows(self, filters: Sequence[object]) -> list[Outcome]:
        """Some filters a job; where one of them fails the job, each is asked for by itself."""
        starts = range(0, len(filters), BUNDLE)
        bundles = [filters[start : start + BUNDLE] for start in starts]
        posted = [self.post(bundle) for bundle in bundles]
        found: list[Outcome] = []
        for bundle, answer in zip(bundles, posted, strict=True):
            together = self._ended(answer, len(bundle))
            is_whole = all(outcome.ids is not None for outcome in together)
            found += together if is_whole else self.one_by_one(bundle)
        return found

    def one_by_one(self, filters: Sequence[object]) -> list[Outcome]:
        posted = [self.post([where]) for where in filters]
        return [outcome for answer in posted for outcome in self._ended(answer, 1)]

    def _ended(self, posted: Answer, count: int) -> list[Outcome]:
        # 10 and 10.0 are one number, and so one request
        assert posted.status in (200, 202), posted.body
        job = self.api.wait_for_job(posted.body["jobId"])
        if job["status"] != "completed":
            return [Outcome(None, job["error"])] * count
        document = opened(self.folder, job["id"])
        return [Outcome(_ids(document[name]), {}) for name in self.names[:count]]


def _ids(tables: Mapping[str, Any]) -> tuple[int, ...]:
    """Of the one table, whatever case the database writes its names in."""
    (rows,) = tables.values()
    return tuple(sorted(row.get("id", row.get("ID")) for row in rows))
