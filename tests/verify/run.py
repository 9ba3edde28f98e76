"""The checks of one run against one server (see docs/sources/verifying.md)."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

import trio

from fetcher.datasources.engines import RequestEngines
from fetcher.domain.connections import Connection, SourceType
from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError, ExtractionRequest
from scripts.types_document.golden import OPTION_SETS, GoldenValue, exact_json, matrix
from tests.integration.datasources.harness import TENANT, document, engines, parsed
from tests.operators.cases import CASES, spelled
from tests.operators.layouts import documents
from tests.operators.refusals import BAD_VALUES
from tests.operators.rows import COLUMNS
from tests.servers.waiting import DeadlineMissedError, eventually
from tests.unit.datasources.mongodb.test_golden_types import bson_of
from tests.verify import tables
from tests.verify.address import Address
from tests.verify.owners import Collections, Owner, StatementRefused, open_owner
from tests.verify.report import Mistakes, NotVerified, Report

GONE_SECONDS: Final = 2.0
SEEN_SECONDS: Final = 10.0
_REFUSALS: Final = frozenset({"invalid_filter", "invalid_filter_value"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much a run reads: ``doublings`` of one row make the big table."""

    doublings: int = 15
    option_sets: Sequence[str] = tuple(OPTION_SETS)
    every_type: int = 1
    every_filter: int = 1
    """2 leaves every other one out."""

    @property
    def rows(self) -> int:
        return int(2**self.doublings)


async def verify(address: Address, scale: Scale) -> Report:
    """Everything that it makes it drops, also when it is cancelled."""
    report = Report()
    connection = address.connection()
    with report.check(f"connect ({address.shown})"):
        async with engines() as opened:
            await opened.engine_for([connection], JobOptions(), {}).test_connection(TENANT, "src")
    if not report.is_good:
        return report
    with report.check("a session that may make tables"):
        async with _place(address) as place:
            await _checked(place, report, scale)
    return report


async def _checked(place: "_Place", report: Report, scale: Scale) -> None:
    with report.check("rows of the tests"):
        await place.make_things()
    with report.check("discovery"):
        await _discovery(place)
    with report.check("filters: rows of every operator") as details:
        details.append(await _operators(place, scale))
    with report.check("filters: values that no column has") as details:
        details.append(await _refusals(place, scale))
    with report.check("types") as details:
        details.append(await _types(place, scale))
    with report.check("streaming") as details:
        details.append(await _streaming(place, scale))
    with report.check("cancel: gone within 2 s"):
        await _cancelling(place, scale)


# --- where the tables lie ---------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """Names of this run's own. ``owner`` is None for MongoDB."""

    address: Address
    connection: Connection
    owner: Owner | None
    collections: Collections
    made: list[str]
    has_schema: bool

    @property
    def kind(self) -> SourceType:
        return self.address.type

    def name(self, purpose: str) -> str:
        """As statements spell it; bare, since the session looks in the right schema."""
        return f"fv_{purpose}_{secrets.token_hex(4)}"

    def qualified(self, name: str) -> str:
        if self.kind is SourceType.SQL_SERVER:
            return f"[{self.connection.schema or 'dbo'}].[{name}]"
        return name

    async def make_things(self) -> None:
        name = self.name("things")
        self.made.insert(0, name)
        if self.owner is None:
            await self.collections.insert(name, documents())
        else:
            await self.owner.run(*tables.make_things(self.kind, self.qualified(name)))

    @property
    def things(self) -> str:
        return self.made[0]


@asynccontextmanager
async def _place(address: Address) -> AsyncIterator[_Place]:
    connection = address.connection()
    collections = Collections(address)
    async with AsyncExitStack() as stack:
        owner: Owner | None = None
        own_schema: str | None = None
        if address.type is not SourceType.MONGODB:
            owner = await open_owner(address)
            stack.push_async_callback(_shielded, owner.close)
            own_schema = await _own_schema(owner, address)
            if own_schema is not None:
                connection = replace(connection, schema=own_schema)
        made: list[str] = []
        place = _Place(address, connection, owner, collections, made, own_schema is not None)
        try:
            yield place
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(60):
                await _drop_all(place, own_schema)


async def _shielded(close: object) -> None:
    with trio.CancelScope(shield=True), trio.move_on_after(10):
        await close()  # type: ignore[operator]


async def _own_schema(owner: Owner, address: Address) -> str | None:
    """A schema of the run's own, where there are schemas and the user may make one."""
    if address.type not in (SourceType.POSTGRESQL, SourceType.SQL_SERVER):
        return None
    name = f"fv_{secrets.token_hex(4)}"
    made = False
    with suppress(StatementRefused):
        await owner.run(f"CREATE SCHEMA {name}")
        made = True
    if address.type is SourceType.POSTGRESQL:
        await owner.run(f"SET search_path TO {name if made else address.schema or 'public'}")
    return name if made else None


async def _drop_all(place: _Place, own_schema: str | None) -> None:
    if place.owner is None:
        await place.collections.drop(*place.made)
        return
    if own_schema is not None and place.kind is SourceType.POSTGRESQL:
        await place.owner.run(f"DROP SCHEMA {own_schema} CASCADE")
        return
    for name in place.made:
        with suppress(StatementRefused):
            await place.owner.run(tables.dropped(place.qualified(name)))
    if own_schema is not None:
        await place.owner.run(f"DROP SCHEMA {own_schema}")


# --- checks -------------------------------------------------------------------------------------


async def _discovery(place: _Place) -> None:
    async with engines() as opened:
        engine = opened.engine_for([place.connection], JobOptions(), {"src": {place.things: ()}})
        snapshot = await engine.discover_schema(TENANT, "src")
    found = {name.lower() for table in snapshot.tables for name in table.fields}
    if missing := sorted(set(COLUMNS) - found):
        raise Mistakes(f"not found: {', '.join(missing)}")


async def _operators(place: _Place, scale: Scale) -> str:
    wrong, refused = [], 0
    cases = CASES[:: scale.every_filter]
    async with engines() as opened:
        for case in cases:
            where = spelled(case.where, place.kind)
            ids = await _ids(opened, place, where)
            refused += ids is None
            if ids != case.expected(place.kind):
                wrong.append(f"{dict(case.where)}: {ids}, not {case.expected(place.kind)}")
    if wrong:
        raise Mistakes(*wrong)
    return f"{len(cases)} filters, {refused} of them refused as documented"


async def _refusals(place: _Place, scale: Scale) -> str:
    refusals = [case for case in BAD_VALUES if place.kind not in case.taken_by]
    refusals = refusals[:: scale.every_filter]
    async with engines() as opened:
        taken = [
            str(dict(case.where))
            for case in refusals
            if await _ids(opened, place, case.where) is not None
        ]
    if taken:
        raise Mistakes(*taken)
    return f"{len(refusals)} filters"


async def _ids(
    opened: RequestEngines, place: _Place, where: Mapping[str, Mapping[str, object]]
) -> tuple[int, ...] | None:
    """None where the filter is refused, and says for which field."""
    try:
        data = await document(
            opened,
            place.connection,
            {place.things: ["id"]},
            filters={place.things: where},  # type: ignore[dict-item]
        )
    except EngineError as failure:
        column = (failure.column or "").lower()
        if failure.reason in _REFUSALS and column in where:
            return None
        raise
    return tuple(_ids_in(data))


def _ids_in(data: bytes) -> list[int]:
    """Of the one table, whatever case the database writes its names in."""
    (rows,) = parsed(data).values()
    return sorted(int(row["id"] if "id" in row else row["ID"]) for row in rows)


async def _types(place: _Place, scale: Scale) -> str:
    if place.owner is None:
        return await _bson_types(place, scale)
    values = tables.golden_values(place.kind)[:: scale.every_type]
    if not values:
        raise NotVerified("the golden matrix has no statements for this database")
    if place.has_schema:
        for statement in tables.golden_setup(place.kind):
            if "EXTENSION" not in statement:  # nobody asked for them in their database
                await place.owner.run(statement)
    wrong: list[str] = []
    unknown = 0
    async with engines() as opened:
        for value in values:
            table = place.name("type")
            place.made.append(table)
            made = tables.make_golden(place.kind, place.qualified(table), value)
            try:
                await place.owner.run(*made)
            except StatementRefused:
                unknown += 1
                continue
            wrong += await _mistakes(opened, place, table, {"": value}, scale)
            await place.owner.run(tables.dropped(place.qualified(table)))
            place.made.remove(table)
    if wrong:
        raise Mistakes(*wrong)
    return f"{len(values) - unknown} values; {unknown} of types that the server does not have"


async def _bson_types(place: _Place, scale: Scale) -> str:
    # what drivers no longer write is read from its bytes, in the unit tests
    values = [value for value in matrix("mongodb").values if not value.sent]
    table = place.name("type")
    place.made.append(table)
    stored: dict[str, GoldenValue] = {}
    for number, value in enumerate(values):
        with suppress(Exception):  # a server that does not know the type
            await place.collections.insert(table, [{"_id": f"v{number}", "v": bson_of(value)}])
            stored[f"v{number}"] = value
    async with engines() as opened:
        wrong = await _mistakes(opened, place, table, stored, scale)
    if wrong:
        raise Mistakes(*wrong)
    return f"{len(stored)} values; {len(values) - len(stored)} that the server does not store"


async def _mistakes(
    opened: RequestEngines,
    place: _Place,
    table: str,
    values: Mapping[str, GoldenValue],
    scale: Scale,
) -> list[str]:
    """Rows of a table whose column is ``v``, by their ``_id`` where there are several."""
    wrong = []
    for name in scale.option_sets:
        data = await document(opened, place.connection, {table: ["v"]}, options=OPTION_SETS[name])
        (rows,) = exact_json(data)["src"].values()
        found = {row.get("_id", ""): row.get("v", row.get("V")) for row in rows}
        wrong += [
            f"{value.declared} {value.value} ({name})"
            for key, value in values.items()
            if found.get(key) != exact_json(value.expected[name])
        ]
    return wrong


async def _streaming(place: _Place, scale: Scale) -> str:
    table = place.name("wide")
    place.made.append(table)
    if place.owner is None:
        note = "x" * tables.WIDE_CHARS
        for start in range(0, scale.rows, 1000):
            part = range(start, min(start + 1000, scale.rows))
            await place.collections.insert(table, [{"id": n, "note": note} for n in part])
    else:
        await place.owner.run(*tables.make_wide(place.kind, place.qualified(table)))
        for step in range(scale.doublings):
            await place.owner.run(tables.doubled(place.qualified(table), 2**step))
    async with engines() as opened:
        data = await document(opened, place.connection, {table: ["id", "note"]})
    ids = _ids_in(data)
    if ids != list(range(scale.rows)):
        raise Mistakes(f"{len(ids)} rows, not {scale.rows}, or not each once")
    return f"{scale.rows} rows, {len(data)} bytes"


async def _cancelling(place: _Place, scale: Scale) -> None:
    """While a reader stands still its session is seen; cancelled, it is seen no more."""
    if place.owner is None:
        raise NotVerified("a cursor's end is told to nobody but the server")
    wide = next((name for name in place.made if name.startswith("fv_wide")), None)
    if wide is None:
        raise NotVerified("the big table was not made")
    question = tables.READING[place.kind]
    try:
        before = await place.owner.values(question)
    except StatementRefused:
        raise NotVerified("the user may not see the server's sessions") from None
    async with engines() as opened:
        started = trio.Event()
        failures: list[EngineError] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stand_still, opened, place.connection, wide, started, failures)
            with trio.move_on_after(SEEN_SECONDS):
                await started.wait()
            reading = await place.owner.values(question) - before
            nursery.cancel_scope.cancel()
        if failures:
            raise failures[0]
        if not reading:
            raise NotVerified("the whole table was on its way before it was looked at")
        owner = place.owner

        async def is_gone() -> bool:
            left = reading & await owner.values(question)
            return left < reading if place.kind is SourceType.ORACLE else not left

        try:
            await eventually(is_gone, deadline_seconds=GONE_SECONDS)
        except DeadlineMissedError:
            raise Mistakes("the session still reads") from None


async def _stand_still(
    opened: RequestEngines,
    connection: Connection,
    table: str,
    started: trio.Event,
    failures: list[EngineError],
) -> None:
    """A failure is noted, not raised: a nursery would put it into a group that no check knows."""
    fields = ("id", "note")
    engine = opened.engine_for([connection], JobOptions(), {"src": {table: fields}})

    async def write(_: bytes | memoryview) -> None:
        started.set()
        await trio.sleep_forever()

    try:
        plan = await engine.plan_extraction(
            TENANT, ExtractionRequest(mapped_fields={"src": {table: fields}})
        )
        await engine.stream_extraction(plan, write)
    except EngineError as failure:
        failures.append(failure)
        started.set()
