"""SQL Server's values and filters, by the real driver from the fake server."""

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from fetcher.domain.jobs import JobOptions
from fetcher_engine import EngineError
from tests.integration.datasources.harness import document, engines, parsed, rows_of
from tests.integration.datasources.sqlserver import Definition, answering, source
from tests.servers.tds import Answer, Column, Request, ServerError, TdsServer, tds_server

ORDERS: Mapping[tuple[str, str], Sequence[Definition]] = {
    ("dbo", "orders"): [("id", "bigint"), ("note", "nvarchar", 200), ("qty", "int")]
}
ORDER_COLUMNS = [Column("bigint"), Column("varbinary")]


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def orders(answer: Answer, **changed: int) -> TdsServer:
    return TdsServer(answer=answering(ORDERS, {"FROM [dbo].[orders]": answer}, **changed))


def the_read_of(server: TdsServer) -> Request:
    """The last statement that read the table's rows."""
    return next(each for each in reversed(server.requests) if "FROM [dbo].[orders]" in each.text)


# column, its type (spec datasources 10.4), how it travels, its cell, its JSON
TYPES: list[tuple[str, str, int, str, object, object]] = [
    ("a_a", "tinyint", 1, "tinyint", 255, 255),
    ("a_small", "smallint", 2, "smallint", -32768, -32768),
    ("b_big", "bigint", 8, "bigint", -9223372036854775808, -9223372036854775808),
    ("c_bit", "bit", 1, "bit", 1, True),
    ("d_dec", "decimal", 9, "nvarchar", "-12.50", "-12.50"),
    ("e_money", "money", 8, "nvarchar", "1234.5000", "1234.5000"),
    ("f_real", "real", 4, "real", 0.1, Decimal("0.1")),
    ("g_float", "float", 8, "float", 0.1, Decimal("0.1")),
    ("h_date", "date", 3, "nvarchar", "2031-04-05", "2031-04-05T00:00:00Z"),
    ("i_time", "time", 5, "nvarchar", "06:07:08.5000000", "06:07:08.5"),
    ("j_dt2", "datetime2", 8, "nvarchar", "2031-04-05T06:07:08.1234567",
     "2031-04-05T06:07:08.1234567Z"),
    ("k_dt", "datetime", 8, "nvarchar", "2031-04-05T06:07:08.120", "2031-04-05T06:07:08.12Z"),
    ("l_small", "smalldatetime", 4, "nvarchar", "2031-04-05T06:07:00", "2031-04-05T06:07:00Z"),
    ("m_dto", "datetimeoffset", 10, "nvarchar", "2031-04-05T06:07:08.5000000+02:00",
     "2031-04-05T06:07:08.5+02:00"),
    ("n_char", "char", 5, "varbinary", utf16("AB   "), "AB   "),
    ("o_text", "nvarchar", -1, "varbinary(max)", utf16('h\u00e9"\\ \n\0\U0001f600' + "x" * 9000),
     'h\u00e9"\\ \n\0\U0001f600' + "x" * 9000),
    ("p_guid", "uniqueidentifier", 16, "nvarchar", "6F9619FF-8B86-D011-B42D-00C04FC964FF",
     "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
    ("q_bin", "varbinary", 10, "varbinary", bytes.fromhex("deadbeef"), "3q2+7w=="),
    ("r_rv", "timestamp", 8, "varbinary", bytes(7) + b"\1", "AAAAAAAAAAE="),
    ("s_xml", "xml", -1, "varbinary(max)", utf16("<a>1</a>"), "<a>1</a>"),
    ("t_json", "nvarchar", 200, "varbinary", utf16('{"a":1}'), '{"a":1}'),
    ("u_geo", "geometry", -1, "varbinary(max)", b"\0\1", "AAE="),
    ("v_int", "sql_variant", 8016, "varbinary(max)", utf16("int:42"), 42),
    ("w_dbl", "sql_variant", 8016, "varbinary(max)",
     utf16("float:" + struct.pack(">d", 0.1).hex().upper()), Decimal("0.1")),
    ("x_txt", "sql_variant", 8016, "varbinary(max)", utf16("nvarchar:a:b"), "a:b"),
    ("y_bin", "sql_variant", 8016, "varbinary(max)", utf16("varbinary:DEADBEEF"), "3q2+7w=="),
    ("z_new", "vector", 100, "varbinary(max)", utf16("[1.5,2]"), "[1.5,2]"),
]  # fmt: skip


def types_server() -> TdsServer:
    answer = Answer(
        columns=[Column(travels) for _, _, _, travels, _, _ in TYPES],
        rows=[[cell for *_, cell, _ in TYPES], [None for _ in TYPES]],
    )
    tables = {("dbo", "kinds"): [(name, kind, size) for name, kind, size, *_ in TYPES]}
    return TdsServer(answer=answering(tables, {"FROM [dbo].[kinds]": answer}))


async def test_every_type_has_its_json() -> None:
    async with tds_server(types_server()) as server, engines() as opened:
        rows = await rows_of(opened, source(server), "kinds", ["*"])
    assert rows == [{name: expected for name, *_, expected in TYPES}, dict.fromkeys(rows[0])]
    # equality alone takes true for 1
    assert rows[0]["c_bit"] is True


async def test_columns_that_are_never_null_travel_in_other_types() -> None:
    kinds = ("tinyint", "smallint", "int", "bigint", "bit", "real", "float")
    values = (255, -1, -2147483648, 9223372036854775807, 0, -0.1, 1e-7)
    answer = Answer(columns=[Column(f"{kind} not null") for kind in kinds], rows=[values])
    tables = {("dbo", "t"): [(f"c_{number}", kind) for number, kind in enumerate(kinds)]}
    server = TdsServer(answer=answering(tables, {"FROM [dbo].[t]": answer}))
    async with tds_server(server), engines() as opened:
        data = await document(opened, source(server), {"t": ["*"]})
    assert data == (
        b'{"src":{"t":[{"c_0":255,"c_1":-1,"c_2":-2147483648,"c_3":9223372036854775807,'
        b'"c_4":false,"c_5":-0.1,"c_6":1e-7}]}}'
    )


async def test_long_list_needs_a_server_that_reads_json() -> None:
    wanted = [f"value {number}" for number in range(2001)]
    async with tds_server(orders(Answer(), level=120)) as server, engines() as opened:
        with pytest.raises(EngineError) as caught:
            await document(
                opened,
                source(server),
                {"orders": ["id"]},
                filters={"orders": {"note": {"in": wanted}}},
            )
    assert (caught.value.reason, caught.value.column) == ("invalid_filter_value", "note")


async def test_options_change_what_they_name_and_nothing_else() -> None:
    async with tds_server(types_server()) as server, engines() as opened:
        rows = await rows_of(
            opened,
            source(server),
            "kinds",
            ["*"],
            options=JobOptions(values="natural", bigint="string", decimals="number"),
        )
    changed = {
        "b_big": "-9223372036854775808",
        "d_dec": Decimal("-12.50"),
        "e_money": Decimal("1234.5000"),
        "h_date": "2031-04-05",
        "j_dt2": "2031-04-05T06:07:08.1234567",
        "k_dt": "2031-04-05T06:07:08.12",
        "l_small": "2031-04-05T06:07:00",
    }
    assert rows[0] == {name: expected for name, *_, expected in TYPES} | changed


async def test_rows_come_in_batches_and_in_order() -> None:
    many = Answer(columns=ORDER_COLUMNS, rows=[(n, utf16(f"n{n}")) for n in range(20_000)])
    async with tds_server(orders(many)) as server, engines() as opened:
        rows = await rows_of(opened, source(server), "orders", ["id", "note"])
    assert rows == [{"id": n, "note": f"n{n}"} for n in range(20_000)]


async def test_empty_table_is_an_empty_list() -> None:
    async with tds_server(orders(Answer(columns=ORDER_COLUMNS))) as server, engines() as opened:
        data = await document(opened, source(server), {"orders": ["id", "note"]})
    assert data == b'{"src":{"orders":[]}}'


async def test_values_are_bound_never_pasted() -> None:
    evil = "x'; DROP TABLE t; --%s @P2"
    answer = Answer(columns=ORDER_COLUMNS, rows=[(1, utf16("a"))])
    async with tds_server(orders(answer)) as server, engines() as opened:
        rows = await rows_of(
            opened,
            source(server),
            "orders",
            ["id", "note"],
            where={"note": {"eq": [evil]}, "id": {"gt": [9007199254740993]}},
        )
    assert rows == [{"id": 1, "note": "a"}]
    request = the_read_of(server)
    assert request.text == (
        "SELECT [t].[id], CONVERT(varbinary(8000), CONVERT(nvarchar(4000), [t].[note]))"
        " FROM [dbo].[orders] AS [t]"
        " WHERE [t].[id] > CONVERT(bigint, @P1) AND ([t].[note] IN (@P2))"
    )
    assert request.values == ("9007199254740993", evil)
    assert request.declared == "@P1 NVARCHAR(4000),@P2 NVARCHAR(4000)"


async def test_long_list_travels_as_one_parameter() -> None:
    answer = Answer(columns=ORDER_COLUMNS)
    wanted = [f"value {number}" for number in range(2001)]
    async with tds_server(orders(answer)) as server, engines() as opened:
        await rows_of(
            opened, source(server), "orders", ["id", "note"], where={"note": {"in": wanted}}
        )
    assert len(the_read_of(server).values) == 1
    assert the_read_of(server).declared == "@P1 NVARCHAR(MAX)"
    assert str(the_read_of(server).values[0]).startswith('["value 0", "value 1", ')


async def test_snapshot_is_taken_where_the_database_allows_it() -> None:
    answer = Answer(columns=ORDER_COLUMNS)
    async with (
        tds_server(orders(answer, snapshot=1)) as allowing,
        tds_server(orders(answer, snapshot=0)) as forbidding,
        engines() as opened,
    ):
        told = []
        for server in (allowing, forbidding):
            with capture_logs() as logs:
                await rows_of(opened, source(server), "orders", ["id", "note"])
            told.append([entry["event"] for entry in logs if entry.get("snapshot") is False])
    assert told == [[], ["snapshot_refused"]]
    begun = [
        any("ISOLATION LEVEL SNAPSHOT" in each.text for each in server.requests)
        for server in (allowing, forbidding)
    ]
    assert begun == [True, False]


FAILURES = [
    (Answer(cut=True), "reset"),
    (Answer(in_row=True), "reset"),
    (Answer(errors=[ServerError(824)]), "unknown"),
    (Answer(errors=[ServerError(1205)]), "conflict"),
    (Answer(errors=[ServerError(3960)]), "conflict"),
    (Answer(counted=6), "protocol"),
]


@pytest.mark.parametrize(("end", "reason"), FAILURES)
async def test_no_end_but_the_protocols_is_a_success(end: Answer, reason: str) -> None:
    answer = Answer(
        columns=ORDER_COLUMNS,
        rows=[(n, utf16("a")) for n in range(5)],
        errors=end.errors,
        cut=end.cut,
        in_row=end.in_row,
        counted=end.counted,
    )
    async with tds_server(orders(answer)) as server, engines() as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"orders": ["id", "note"]})
    error = caught.value
    assert (error.stage, error.reason, error.table) == ("rows", reason, "orders")
    assert "canary" not in f"{error} {error.__cause__} {error.__context__}"


@pytest.mark.parametrize(
    ("number", "stage", "reason"),
    [
        (208, "schema", "schema changed"),
        (229, "query", "forbidden"),
        (1222, "query", "lock_timeout"),
        (8114, "query", "invalid_filter_value"),
    ],
)
async def test_refused_statement_has_a_reason(number: int, stage: str, reason: str) -> None:
    answer = Answer(errors=[ServerError(number)])
    async with tds_server(orders(answer)) as server, engines() as opened:
        with pytest.raises(EngineError) as caught:
            await rows_of(opened, source(server), "orders", ["id"], where={"id": {"eq": [1]}})
    assert (caught.value.stage, caught.value.reason) == (stage, reason)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (b"a\0\0\xd8b\0", "invalid_text"),
        (b"abc", "invalid_text"),
        (utf16("x" * 101), "cell_too_large"),
    ],
)
async def test_cell_that_cannot_be_written_names_its_column(cell: bytes, reason: str) -> None:
    answer = Answer(columns=ORDER_COLUMNS, rows=[(1, utf16("fine")), (2, cell)])
    async with tds_server(orders(answer)) as server, engines(max_cell_bytes=100) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"orders": ["id", "note"]})
    error = caught.value
    assert (error.stage, error.reason, error.table, error.column) == (
        "rows", reason, "orders", "note",
    )  # fmt: skip


async def test_huge_cell_is_cut_off_not_kept() -> None:
    tables = {("dbo", "t"): [("body", "nvarchar", -1)]}
    huge = Answer(columns=[Column("varbinary(max)")], rows=[(bytes(3_000_000),)])
    server = TdsServer(answer=answering(tables, {"FROM [dbo].[t]": huge}))
    async with tds_server(server), engines(max_cell_bytes=1000) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"t": ["body"]})
    assert (caught.value.reason, caught.value.column) == ("cell_too_large", "body")
    assert "1, 2002)" in server.requests[-1].text


async def test_row_without_end_is_not_kept() -> None:
    """A server that is none, and sends a large value where nobody asked for one."""
    huge = Answer(columns=[Column("varbinary(max)")], rows=[(bytes(20 * 1024 * 1024),)])
    tables = {("dbo", "t"): [("day", "date")]}
    server = TdsServer(answer=answering(tables, {"FROM [dbo].[t]": huge}))
    async with tds_server(server), engines(max_cell_bytes=1000) as opened:
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"t": ["day"]})
    assert (caught.value.stage, caught.value.reason) == ("rows", "too_large")


async def test_tables_are_found_by_spelling_then_by_case() -> None:
    tables: Mapping[tuple[str, str], Sequence[Definition]] = {
        ("dbo", "Users"): [("id", "int")],
        ("dbo", "users"): [("id", "int")],
        ("sales", 'we"]ird'): [("select", "int"), ("%s", "int")],
    }
    one = Answer(columns=[Column("int")], rows=[(7,)])
    two = Answer(columns=[Column("int"), Column("int")], rows=[(1, 2)])
    server = TdsServer(
        answer=answering(tables, {"[dbo].[users]": one, 'FROM [sales].[we"]]ird]': two})
    )
    async with tds_server(server), engines() as opened:
        found = await document(opened, source(server), {"users": ["id"]})
        odd = await document(opened, source(server), {'Sales.we"]ird': ["select", "%s"]})
        with pytest.raises(EngineError) as caught:
            await document(opened, source(server), {"USERS": ["id"]})
    assert parsed(found) == {"users": [{"id": 7}]}
    assert parsed(odd) == {'Sales.we"]ird': [{"%s": 1, "select": 2}]}
    assert caught.value.category == "validation"
    (failure,) = caught.value.failures
    assert (failure.table, failure.candidates) == ("USERS", ("Users", "users"))


async def test_the_next_job_reads_in_the_same_session() -> None:
    answer = Answer(columns=ORDER_COLUMNS, rows=[(1, utf16("a"))])
    async with tds_server(orders(answer, snapshot=1)) as server, engines() as opened:
        connection = source(server)
        for _ in range(2):
            rows = await rows_of(opened, connection, "orders", ["id", "note"])
            assert rows == [{"id": 1, "note": "a"}]
        assert len(server.logins) == 1
        texts = [request.text for request in server.requests]
    assert sum("SET XACT_ABORT ON" in text for text in texts) == sum(
        "ROLLBACK" in text for text in texts
    )
    last = [n for n, text in enumerate(texts) if "ROLLBACK" in text][-1]
    assert last > max(n for n, text in enumerate(texts) if "BEGIN TRANSACTION" in text)


async def test_a_session_that_stays_in_a_transaction_is_not_taken_up() -> None:
    answer = Answer(columns=ORDER_COLUMNS, rows=[(1, utf16("a"))])
    inner = orders(answer).answer

    def stubborn(request: Request) -> Answer | None:
        if request.text == "SELECT @@TRANCOUNT":
            return Answer(columns=[Column("int")], rows=[(1,)])
        return inner(request)

    async with tds_server(TdsServer(answer=stubborn)) as server, engines() as opened:
        connection = source(server)
        await rows_of(opened, connection, "orders", ["id", "note"])
        await rows_of(opened, connection, "orders", ["id", "note"])
        assert len(server.logins) == 4, "one to plan, one to read, for each"
