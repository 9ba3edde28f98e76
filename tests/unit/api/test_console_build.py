"""The committed page is what its sources make; and its rules that need no browser."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from fetcher.datasources.sqlite import types as sqlite_types
from fetcher.domain.job_transitions import CODE_LEASE_RAN_OUT, CODE_PARKED, CODE_RELEASED
from fetcher.domain.tls_modes import TLS_MODES, VERIFYING_TLS_MODES
from fetcher_engine import ErrorCategory

SOURCES = Path(__file__).resolve().parents[3] / "console"
BUILT = SOURCES.parent / "fetcher" / "api" / "console"
INPUTS = ("package.json", "package-lock.json", "tsconfig.json", "build.mjs", "index.html")
SECONDS = 120


def digest_of_sources() -> str:
    """As ``console/build.mjs`` takes it: names and contents, in the order of the names."""
    names = [*INPUTS, "icon.svg"]
    names += [
        path.relative_to(SOURCES).as_posix()
        for path in (SOURCES / "src").rglob("*")
        if path.is_file()
    ]
    digest = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((SOURCES / name).read_bytes()).hexdigest()
        digest.update(f"{content}  {name}\n".encode())
    return digest.hexdigest()


def test_the_page_was_built_from_these_sources() -> None:
    """Else: ``make console``."""
    assert json.loads((BUILT / "console.json").read_text())["sources"] == digest_of_sources()


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with what they are built by."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    folder = tmp_path_factory.mktemp("page")
    copy = folder / "console"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(BUILT, folder / "fetcher" / "api" / "console")
    installed = run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], copy)
    if installed.returncode != 0:
        pytest.skip("the page's tools cannot be had: no registry of npm's answers")
    return copy


def test_the_sources_make_this_page_byte_for_byte(tools: Path) -> None:
    checked = run(["node", "build.mjs", "--check"], tools)
    assert (checked.returncode, checked.stderr) == (0, "")
    types = run(["npx", "tsc", "--noEmit"], tools)
    assert (types.returncode, types.stdout) == (0, "")


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (SOURCES / "package-lock.json").read_text()


def test_licences_lie_beside_the_page() -> None:
    text = (BUILT / "LICENSES.txt").read_text()
    dependencies = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    for name, version in dependencies.items():
        assert f"{name} {version} (MIT)" in text
    assert text.count("Permission is hereby granted, free of charge") >= len(dependencies)


def test_the_form_knows_the_tls_modes_of_each_type() -> None:
    text = (SOURCES / "src" / "pages" / "connection-form.tsx").read_text()
    told = re.findall(
        r"^  ([A-Z_]+): \{ label: .*modes: (\[.*?\]), needsCa: (\[.*?\]) \},$", text, re.MULTILINE
    )
    assert {
        name: (tuple(json.loads(modes)), frozenset(json.loads(ca))) for name, modes, ca in told
    } == {
        str(name): (modes, VERIFYING_TLS_MODES.intersection(modes))
        for name, modes in TLS_MODES.items()
    }


def called(tools: Path, module: str, function: str, calls: Sequence[Sequence[object]]) -> list[Any]:
    """What a function of the page's returns for each list of arguments."""
    bundle = ["npx", "esbuild", f"src/{module}.ts", "--bundle", "--format=esm", "--log-level=error"]
    assert run([*bundle, f"--outfile={module}.mjs"], tools).stderr == ""
    (tools / "calls.json").write_text(json.dumps(calls))
    script = (
        f"import * as page from './{module}.mjs'; import {{ readFileSync }} from 'node:fs';"
        " const calls = JSON.parse(readFileSync('calls.json', 'utf8'));"
        f" console.log(JSON.stringify(calls.map((each) => page.{function}(...each))));"
    )
    answered = run(["node", "--input-type=module", "--eval", script], tools)
    assert answered.stderr == ""
    results: list[Any] = json.loads(answered.stdout)
    return results


KINDS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "POSTGRESQL": {
        "number": ["smallint", "integer", "bigint", "oid", "numeric", "numeric(10,2)", "real",
                   "double precision"],
        "boolean": ["boolean"],
        "text": ["text", "character(5)", "character varying(20)", "character varying", '"char"',
                 "name", "citext", ""],
        "time": ["date", "timestamp without time zone", "timestamp(3) without time zone",
                 "timestamp with time zone"],
        "ordered": ["time without time zone", "time(3) with time zone", "interval", "interval(3)",
                    "interval day to second(3)", "money", "uuid", "inet", "cidr", "macaddr",
                    "bit(4)", "bit varying(9)", "bytea", "pg_lsn"],
        "other": ["integer[]", "numeric(5,2)[]", "text[]", "timestamp with time zone[]",
                  "int4range", "int8multirange", "numrange", "tstzrange", "jsonb", "hstore", "xid",
                  "cid", "tid", "tsvector", "int2vector", "mood", "billing.amount", "interval[]",
                  '"Date"'],
        "opaque": ["json", "xml", "point", "box", "circle", "polygon", "path", "line", "lseg"],
    },
    "MYSQL": {
        "number": ["int(11) unsigned", "int(6) zerofill", "tinyint(4)", "tinyint", "smallint(6)",
                   "mediumint(9)", "bigint(20) unsigned", "decimal(10,2)", "float", "double(8,2)",
                   "bit(10)", "year(4)"],
        "boolean": ["tinyint(1)", "bit(1)"],
        "text": ["char(5)", "varchar(20)", "tinytext", "longtext", "enum('int(1)','date')",
                 "set('a','b')"],
        "time": ["date", "datetime(6)", "timestamp"],
        "ordered": ["time", "time(1)", "uuid", "inet4", "inet6"],
        "other": ["binary(4)", "varbinary(90)", "blob", "longblob", "vector(2)"],
        "opaque": ["json", "point", "multipoint", "linestring", "geometry", "geometrycollection"],
    },
    "SQL_SERVER": {
        "number": ["tinyint", "int", "bigint", "decimal", "numeric", "money", "smallmoney", "real",
                   "float"],
        "boolean": ["bit"],
        "text": ["char", "nvarchar", "text", "ntext", "sysname"],
        "time": ["date", "datetime", "smalldatetime", "datetime2", "datetimeoffset"],
        "ordered": ["time", "uniqueidentifier"],
        "other": ["binary", "varbinary", "timestamp", "PhoneNumber", "interval"],
        "opaque": ["xml", "json", "image", "geography", "hierarchyid", "sql_variant", "vector"],
    },
    "ORACLE": {
        "number": ["NUMBER", "NUMBER(10,2)", "FLOAT", "BINARY_FLOAT", "BINARY_DOUBLE"],
        "boolean": ["BOOLEAN"],
        "text": ["CHAR", "VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB"],
        "time": ["DATE", "TIMESTAMP(9)", "TIMESTAMP(6) WITH TIME ZONE",
                 "TIMESTAMP(6) WITH LOCAL TIME ZONE"],
        "ordered": ["INTERVAL YEAR(2) TO MONTH", "INTERVAL DAY(2) TO SECOND(6)"],
        "other": ["RAW", "ROWID", "UROWID", "SOMETHING NEW"],
        "opaque": ["LONG", "LONG RAW", "BLOB", "XMLTYPE", "JSON", "VECTOR", "BFILE"],
    },
    "MONGODB": {
        "number": ["number (inferred from 12 documents)", "decimal|number", "number|object"],
        "boolean": ["boolean (inferred from 1 documents)"],
        "text": ["string", "number|string", "objectId|string", "unknown", "array", "array|number"],
        "time": ["date"],
        "ordered": ["objectId (inferred from 1000 documents)", "date|number"],
        "other": ["binData"],
        "opaque": ["object", "regex", "timestamp", "minKey/maxKey"],
    },
}  # fmt: skip
"""By database the page's kind of its catalogue's words."""


def test_the_page_knows_what_each_type_holds(tools: Path) -> None:
    expected = [
        (word, database, kind)
        for database, kinds in KINDS.items()
        for kind, words in kinds.items()
        for word in words
    ]
    found = called(tools, "kinds", "kindOf", [each[:2] for each in expected])
    assert [(*each[:2], kind) for each, kind in zip(expected, found, strict=True)] == expected


SQLITE_KINDS: Final = {
    sqlite_types.Kind.INTEGER: "number",
    sqlite_types.Kind.NUMBER: "number",
    sqlite_types.Kind.FLOAT: "number",
    sqlite_types.Kind.BOOLEAN: "boolean",
    sqlite_types.Kind.TEXT: "text",
    sqlite_types.Kind.BYTES: "other",
    sqlite_types.Kind.DAY: "time",
    sqlite_types.Kind.MOMENT: "time",
    sqlite_types.Kind.ANY: "text",
}


def test_the_page_reads_declarations_of_sqlite_as_the_service_does(tools: Path) -> None:
    words = [
        "INTEGER", "INT", "BIGINT", "TINY INT", "int8", "UNSIGNED BIG INT", "TINYINT(1)", "BOOLEAN",
        "NUMERIC(10,2)", "DECIMAL(10,2)", "DEC", "NUMBER", "REAL", "DOUBLE PRECISION", "FLOAT",
        "TEXT", "VARCHAR(3)", "NCHAR(5)", "CLOB", "BLOB", "DATE", "DATETIME", "timestamp",
        "UPDATED", "POINT", "INTERVAL", "INT4RANGE", "JSON", "UUID", "",
    ]  # fmt: skip
    assert dict(
        zip(words, called(tools, "kinds", "kindOf", [(w, "SQLITE") for w in words]), strict=True)
    ) == {word: SQLITE_KINDS[sqlite_types.kind_of(word)] for word in words}


def test_operators_fit_the_kind(tools: Path) -> None:
    kinds = ["number", "time", "ordered", "text", "boolean", "other", "opaque"]
    found = called(tools, "kinds", "operatorsOf", [[kind] for kind in kinds])
    by_kind = {kind: set(operators) for kind, operators in zip(kinds, found, strict=True)}
    nulls, equality = {"is_null", "not_null"}, {"eq", "ne"}
    ordered = nulls | equality | {"in", "nin", "gt", "gte", "lt", "lte", "between"}
    assert by_kind == {
        "number": ordered,
        "time": ordered,
        "ordered": ordered,
        "text": ordered | {"like"},
        "boolean": nulls | equality,
        "other": nulls | equality | {"in", "nin"},
        "opaque": nulls,
    }


def test_a_job_that_ends_is_changed_in_its_place(tools: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "3", "status": "pending", "createdAt": "2026-01-03T00:00:00Z"},
        {"id": "2", "status": "pending", "createdAt": "2026-01-02T00:00:00Z",
         "waitingReason": "connection is down", "startedAt": "2026-01-02T00:00:01Z"},
        {"id": "1", "status": "completed", "createdAt": "2026-01-01T00:00:00Z", "rowCount": 5},
    ]  # fmt: skip
    at = "2026-01-04T00:00:00Z"
    ended = {"jobId": "2", "status": "completed", "completedAt": at, "rowCount": 7, "sizeBytes": 70}
    changed = {
        "id": "2", "status": "completed", "createdAt": rows[1]["createdAt"], "completedAt": at,
        "startedAt": rows[1]["startedAt"], "rowCount": 7, "sizeBytes": 70, "error": None,
    }  # fmt: skip
    unknown = {**ended, "jobId": "9"}
    calls = [
        (rows, ended, None), (rows, ended, "failed,completed"), (rows, ended, "pending"),
        (rows, unknown, None),
    ]  # fmt: skip
    whole = [rows[0], changed, rows[2]]
    assert called(tools, "job-rows", "withEnded", calls) == [
        whole, whole, [rows[0], rows[2]], rows,
    ]  # fmt: skip


def test_rows_that_are_read_again_are_as_they_are_found(tools: Path) -> None:
    rows = [{"id": each, "status": "pending"} for each in "4321"]
    found = [{"id": "3", "status": "failed"}, {"id": "0", "status": "completed"}]
    [again] = called(tools, "job-rows", "withAgain", [(rows, rows[1:3], found)])
    assert again == [rows[0], found[0], rows[3]]


def test_more_jobs_than_a_page_holds_leave_a_gap_that_is_read(tools: Path) -> None:
    def page(*days: int, more: str | None = "next") -> dict[str, object]:
        return {"items": [jobs_of(day)[0] for day in days], "nextCursor": more}

    def jobs_of(*days: int) -> list[dict[str, object]]:
        return [{"id": str(day), "createdAt": f"2026-01-{day:02}T00:00:00Z"} for day in days]

    shown = jobs_of(5, 4, 3)
    calls = [
        (page(9, 8), shown), (page(6, 5), shown), (page(5, 4), shown),
        (page(9, 8, more=None), shown), (page(9, 8), []), (page(), shown),
    ]  # fmt: skip
    found = called(tools, "job-rows", "leavesGap", calls)
    assert found == [True, False, False, False, False, False]


def test_durations_and_sizes_are_rounded_before_they_are_taken_apart(tools: Path) -> None:
    durations = {
        -300: "0 ms", 0.0004: "0 ms", 0.9996: "1.0 s", 9.94: "9.9 s", 9.97: "10 s", 59.4: "59 s",
        59.96: "1 min 0 s", 119.7: "2 min 0 s", 3599.4: "59 min 59 s", 3599.9: "1 h 0 min",
        7199: "2 h 0 min", 86_399: "1 d 0 h", 90_000: "1 d 1 h", 172_799: "2 d 0 h",
    }  # fmt: skip
    told = called(tools, "ui/format", "seconds", [[each] for each in durations])
    assert dict(zip(durations, told, strict=True)) == durations
    sizes = {
        0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 10_239: "10 KiB", 1_047_000: "1022 KiB",
        1_048_575: "1.0 MiB", 5 * 2**50: "5120 TiB",
    }  # fmt: skip
    told = called(tools, "ui/format", "bytes", [[each] for each in sizes])
    assert dict(zip(sizes, told, strict=True)) == sizes


def test_days_begin_where_the_reader_is(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    found = called(tools, "ui/format", "beginOf", [["2026-01-02"], ["no day"]])
    assert found == ["2026-01-01T15:00:00.000Z", "no day"]


REASON: Final = re.compile(r"`([a-z_ ]+)`")


def told_reasons() -> list[tuple[str, str]]:
    """Stage and reason of the tables of docs/failures.md."""
    _, not_reached, reading = (SOURCES.parent / "docs" / "failures.md").read_text().split("\n## ")
    return [
        (stage, reason)
        for stage, text in (("tcp", not_reached), ("query", reading))
        for line in text.splitlines()
        if line.startswith("| `")
        for reason in REASON.findall(line.split("|")[1])
        if reason != "unknown"
    ]


def test_what_to_do_is_known_of_every_reason_and_code(tools: Path) -> None:
    reasons = told_reasons()
    assert {("tcp", "dns"), ("query", "not_encodable")} <= set(reasons)
    # of what a message says itself the code has the advice
    codes = {*map(str, ErrorCategory), "connection_down", "cancelled", "worker_lost", "storage_x"}
    codes -= {"unauthorized", "canceled", "internal"}
    calls = [(stage, reason) for stage, reason in reasons]
    by_code = [(None, None, code) for code in sorted(codes - {"connect"})]
    unknown = [("tcp", "x"), ("query", "x")]
    *told, general_tcp, general = called(
        tools, "texts", "texts.failures.advice", [*calls, *by_code, *unknown]
    )
    without = [
        call
        for call, text in zip([*calls, *by_code], told, strict=True)
        if text in (general_tcp, general)
    ]
    assert without == []
    ends = sorted({*codes, CODE_LEASE_RAN_OUT, CODE_PARKED, CODE_RELEASED} - {"cancelled"})
    outcomes = called(tools, "texts", "texts.job.endedBy", [[code] for code in ends])
    assert [code for code, text in zip(ends, outcomes, strict=True) if text == code] == []
