"""From measured lines to verdicts on the design's table."""

import json
from typing import Any

import pytest

from benchmarks.judging import judge
from benchmarks.verdicts import Verdict, verdict_of


def a_job(figure: str, **members: Any) -> dict[str, Any]:
    """A line of a job's whole way."""
    return {
        "figure": figure,
        "rows": 1_000_000,
        "rows_per_second": 240_000,
        "ratio_to_peer": 1.02,
        "peak_mib": 150,
        "peak_growth_mib": 20,
        "loop_late_ms": [4.0, 12.5, 8.0],
        **members,
    }


POSTGRESQL = [
    {"figure": "postgresql.psql_row_to_json", "rows_per_second": 235_000},
    a_job("postgresql.sealed_to_folder", peer="postgresql.psql_row_to_json"),
    a_job("postgresql.large_rows", peak_growth_mib=68, loop_late_ms=[51.0]),
    {"figure": "postgresql.idle", "loop_late_ms": [1.0, 2.0]},
    {"figure": "postgresql.usual", "rows_per_second": 60_000, "peak_mib": 1900},
]


def by_name(lines: list[dict[str, Any]]) -> dict[str, Verdict]:
    return {verdict.figure: verdict for verdict in judge(lines)}


def test_a_job_is_judged_beside_the_client_and_the_usual_way() -> None:
    found = by_name(POSTGRESQL)
    assert found["postgresql.beside_psql"] == Verdict(
        figure="postgresql.beside_psql",
        row="postgresql",
        value=240_000,
        unit="rows/s",
        peer="psql `row_to_json`",
        peer_value=235_000,
        ratio=1.02,
        target="≥ 1.0 ×",
        holds=True,
    )
    faster, smaller = (found[f"usual.{name}.postgresql"] for name in ("speed", "memory"))
    assert (faster.ratio, faster.holds) == (4.0, True)
    assert (smaller.ratio, smaller.peer_value, smaller.holds) == (0.079, 1900, True)


def test_what_is_bounded_counts_at_its_worst() -> None:
    found = by_name(POSTGRESQL)
    few, large = (
        found[f"lateness.postgresql.{name}"] for name in ("sealed_to_folder", "large_rows")
    )
    assert (few.value, few.peer_value, few.holds) == (12.5, 2.0, True)
    assert (large.value, large.holds) == (51.0, False)
    assert found["memory.postgresql.sealed_to_folder"].holds
    # 64 MiB and four rows of 1 MiB are just too much
    assert not found["memory.postgresql.large_rows"].holds


@pytest.mark.parametrize(
    ("rate", "ratio", "holds"),
    [(250_000, 0.8, (True, True)), (249_999, 0.9, (False, True)), (300_000, 0.79, (True, False))],
)
def test_mariadb_has_two_targets(rate: int, ratio: float, holds: tuple[bool, bool]) -> None:
    line = a_job(
        "mysql.sealed_to_folder",
        peer="mysql.mysql_quick",
        rows_per_second=rate,
        ratio_to_peer=ratio,
    )
    found = by_name([{"figure": "mysql.mysql_quick", "rows_per_second": 310_000}, line])
    names = ("mariadb.rows_per_second", "mariadb.beside_mysql")
    assert tuple(found[name].holds for name in names) == holds


def test_each_shape_of_documents_is_judged() -> None:
    lines: list[dict[str, Any]] = []
    for shape, ratio in (("mixed", 1.25), ("sparse", 0.7)):
        for way, rate in (("decode_all", 100_000), ("decode_orjson", 50_000), ("writer", 90_000)):
            figure = f"mongodb.{shape}.{way}"
            lines.append(
                {"figure": figure, "documents_per_second": rate, "ratio_to_decode_all": ratio}
            )
    found = by_name(lines)
    assert {name: verdict.holds for name, verdict in found.items()} == {
        "mongodb.mixed": True,
        "mongodb.sparse": False,
    }
    assert found["mongodb.mixed"].peer_value == 100_000


def test_memory_is_judged_by_growth_and_by_the_smallest_result() -> None:
    line = {
        "figure": "memory.mongodb",
        "result_mb": [10, 320],
        "peak_mib": [180, 198],
        "peak_growth_mib": 64.0,
        "ratio_to_smallest": 1.1,
    }
    found = by_name([line, {"figure": "memory.at_once", "peak_growth_mib": 90}])
    assert {name: verdict.holds for name, verdict in found.items()} == {
        "memory.mongodb.flat": True,
        "memory.mongodb.growth": False,
    }
    assert (found["memory.mongodb.flat"].value, found["memory.mongodb.flat"].peer_value) == (
        198,
        180,
    )


def test_sources_at_once_and_requests_are_judged() -> None:
    slowed = {
        "figure": "slowed.four_sources",
        "slowest_alone_seconds": [3.0, 3.5],
        "together_seconds": [3.9, 4.0],
        "ratio_to_slowest": 1.31,
    }
    found = by_name([slowed, {"figure": "http.create_job.sqlite", "p99_ms": 49.9}])
    assert {name: verdict.holds for name, verdict in found.items()} == {
        "slowed.together": False,
        "create_job.sqlite": True,
    }


def test_what_was_not_measured_has_no_verdict() -> None:
    assert judge([{"figure": "machine", "cores": 2}]) == []


def test_a_verdict_is_read_from_its_line_whoever_wrote_it() -> None:
    verdict = judge(POSTGRESQL)[0]
    assert verdict_of(json.loads(verdict.line())) == verdict
    theirs = {
        "figure": "memory.mongodb.flat",
        "row": "memory",
        "value": 31,
        "unit": "MiB",
        "target": "≤ 1.1 ×",
        "holds": True,
        "sampled": [29, 31],
    }
    read = verdict_of(theirs)
    assert read is not None
    assert (read.row, read.value, read.peer, read.ratio) == ("memory", 31, "", None)
    assert verdict_of({"figure": "mysql.idle"}) is None
