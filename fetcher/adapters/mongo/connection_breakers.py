"""Breakers of connections in MongoDB, in a collection that the reference does not know."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from bson import Binary
from pymongo import DESCENDING
from pymongo.errors import DuplicateKeyError

from fetcher.adapters.mongo.document_fields import Document, DocumentFields
from fetcher.adapters.mongo.job_documents import token_value
from fetcher.adapters.mongo.readable import readable
from fetcher.adapters.mongo.server import MongoServer, Turn
from fetcher.domain.breakers import (
    REMEMBERED_SECONDS,
    Breaker,
    BreakerChange,
    BreakerRule,
    SourceDown,
)
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import ConnectionId

_RECORD: Final = "breaker record"
_TRIES: Final = 20
"""All workers may meet the same failure at once, and each try lets one of them through."""


class MongoConnectionBreakers:
    """Implements :class:`fetcher.ports.ConnectionBreakers`.

    Each write names the ``revision`` of the record that was judged, and a new record counts on the
    uniqueness of its id. A write whose answer was lost is not settled: its failure is counted or
    not, and its probe ends by itself.
    """

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    async def find(self, connection_ids: Sequence[ConnectionId]) -> Mapping[ConnectionId, Breaker]:
        ids = [_id_value(each) for each in connection_ids]

        async def find(turn: Turn) -> Mapping[ConnectionId, Breaker]:
            found = turn.breakers.find({"_id": {"$in": ids}, **_remembered(turn.now)})
            breakers = [readable(document, _read_breaker) async for document in found]
            return {each.connection_id: each for each in breakers if each is not None}

        return await self._server.run(find)

    async def change(self, connection_id: ConnectionId, rule: BreakerRule) -> BreakerChange:
        own = {"_id": _id_value(connection_id)}

        async def change(turn: Turn) -> BreakerChange:
            for _ in range(_TRIES):
                stored = await turn.breakers.find_one(own)
                now = turn.now
                before = None if stored is None else readable(stored, _read_breaker)
                if before is not None and before.is_forgotten(now):
                    before = None
                after = rule(before, now)
                if after is before or await _write(turn, own, stored, after):
                    return BreakerChange(before=before, after=after, at=now)
            raise PortUnavailable("the connection's breaker changes too often")

        return await self._server.run(change)

    async def count_open(self) -> int:
        async def count(turn: Turn) -> int:
            return await turn.breakers.count_documents(_open(turn.now))

        return await self._server.run(count)

    async def list_open(self, *, limit: int) -> Sequence[Breaker]:
        async def find(turn: Turn) -> Sequence[Breaker]:
            order = [("changed_at", DESCENDING), ("_id", DESCENDING)]
            found = turn.breakers.find(_open(turn.now)).sort(order).limit(limit)
            breakers = [readable(document, _read_breaker) async for document in found]
            return [each for each in breakers if each is not None]

        return await self._server.run(find)


async def _write(
    turn: Turn, own: Document, stored: Mapping[str, Any] | None, after: Breaker | None
) -> bool:
    """Whether the record still was the one that was judged."""
    if stored is None:
        if after is None:
            return True
        try:
            await turn.breakers.insert_one(_document(after))
        except DuplicateKeyError:
            return False
        return True
    judged = {**own, "revision": stored.get("revision")}
    if after is None:
        return (await turn.breakers.delete_one(judged)).deleted_count == 1
    return (await turn.breakers.replace_one(judged, _document(after))).matched_count == 1


def _id_value(connection_id: ConnectionId) -> Binary:
    return Binary(connection_id.bytes, 0)


def _open(now: datetime) -> Document:
    return {"retry_at": {"$ne": None}, **_remembered(now)}


def _remembered(now: datetime) -> Document:
    return {"changed_at": {"$gt": now - timedelta(seconds=REMEMBERED_SECONDS)}}


def _document(breaker: Breaker) -> Document:
    """Each write has a revision of its own: a number would come again after a deletion."""
    return {
        "revision": Binary(secrets.token_bytes(8), 0),
        "_id": _id_value(breaker.connection_id),
        "config_name": breaker.config_name,
        "version": breaker.version,
        "stage": breaker.down.stage,
        "reason": breaker.down.reason,
        "failures": breaker.failures,
        "openings": breaker.openings,
        "retry_at": breaker.retry_at,
        "probe_token": token_value(breaker.probe_token),
        "probe_until": breaker.probe_until,
        "changed_at": breaker.changed_at,
    }


def _read_breaker(document: Mapping[str, Any]) -> Breaker:
    """Raise RecordCorrupt, naming the field, for what is no breaker: such a one holds nobody back,
    and the next failure is written over it."""
    fields = DocumentFields(_RECORD, document)
    return Breaker(
        connection_id=ConnectionId(fields.record_id()),
        config_name=fields.text("config_name"),
        version=fields.time("version"),
        down=SourceDown(stage=fields.text("stage"), reason=fields.text("reason")),
        failures=fields.count("failures"),
        openings=fields.count("openings"),
        retry_at=fields.optional_time("retry_at"),
        probe_token=fields.optional_bytes("probe_token"),
        probe_until=fields.optional_time("probe_until"),
        changed_at=fields.time("changed_at"),
    )
