"""From what the benchmarks print to the verdicts on the rows of the design's table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from benchmarks.verdicts import Line, Verdict

SOURCES: Final[Mapping[str, str]] = {
    "postgresql": "PostgreSQL",
    "mysql": "MariaDB",
    "mongodb": "MongoDB",
}
"""As the benchmarks name them, and as people do."""

ROWS_PER_SECOND: Final = "rows/s"
ONE_TENTH: Final = 0.1
GROWTH_MIB: Final = 64
LARGE_GROWTH_MIB: Final = GROWTH_MIB + 4
LATE_MS: Final = 50
CREATE_MS: Final = 50

_USUAL_WAY: Final = "the usual Python way"

Figures = Mapping[str, Line]


def judge(lines: Sequence[Line]) -> list[Verdict]:
    """The verdicts on what was measured; what was not has none."""
    figures = {str(line["figure"]): line for line in lines}
    return [
        *_postgresql(figures),
        *_mariadb(figures),
        *_mongodb(figures),
        *_usual(figures),
        *_memory(figures),
        *_slowed(figures),
        *_lateness(figures),
        *_create_job(figures),
    ]


def _postgresql(figures: Figures) -> Iterator[Verdict]:
    if (line := figures.get("postgresql.sealed_to_folder")) is not None:
        yield _beside_client(
            line, figures, row="postgresql", client="psql", peer="psql `row_to_json`", least=1.0
        )


def _mariadb(figures: Figures) -> Iterator[Verdict]:
    if (line := figures.get("mysql.sealed_to_folder")) is None:
        return
    rate = line["rows_per_second"]
    yield Verdict(
        figure="mariadb.rows_per_second",
        row="mariadb",
        value=rate,
        unit=ROWS_PER_SECOND,
        target="≥ 250 000 rows/s",
        holds=rate >= 250_000,
    )
    yield _beside_client(
        line, figures, row="mariadb", client="mysql", peer="`mysql -q`, JSON query", least=0.8
    )


def _beside_client(
    line: Line, figures: Figures, *, row: str, client: str, peer: str, least: float
) -> Verdict:
    return Verdict(
        figure=f"{row}.beside_{client}",
        row=row,
        value=line["rows_per_second"],
        unit=ROWS_PER_SECOND,
        peer=peer,
        peer_value=figures[line["peer"]]["rows_per_second"],
        ratio=line["ratio_to_peer"],
        target=f"≥ {least} ×",
        holds=line["ratio_to_peer"] >= least,
    )


def _mongodb(figures: Figures) -> Iterator[Verdict]:
    """The mixed columns first; the others are shapes that the design's row does not speak of."""
    for name, line in figures.items():
        source, _, rest = name.partition(".")
        shape, _, way = rest.partition(".")
        if (source, way) == ("mongodb", "writer"):
            yield Verdict(
                figure=f"mongodb.{shape}",
                row="mongodb",
                value=line["documents_per_second"],
                unit="documents/s",
                peer="`bson.decode_all`",
                peer_value=figures[f"mongodb.{shape}.decode_all"]["documents_per_second"],
                ratio=line["ratio_to_decode_all"],
                target="≥ 0.9 ×",
                holds=line["ratio_to_decode_all"] >= 0.9,
            )


def _usual(figures: Figures) -> Iterator[Verdict]:
    for source in SOURCES:
        ours, usual = figures.get(f"{source}.sealed_to_folder"), figures.get(f"{source}.usual")
        if ours is None or usual is None:
            continue
        faster = round(ours["rows_per_second"] / usual["rows_per_second"], 2)
        yield Verdict(
            figure=f"usual.speed.{source}",
            row="usual",
            value=ours["rows_per_second"],
            unit=ROWS_PER_SECOND,
            peer=_USUAL_WAY,
            peer_value=usual["rows_per_second"],
            ratio=faster,
            target="≥ 3 ×",
            holds=faster >= 3,
        )
        share = round(ours["peak_mib"] / usual["peak_mib"], 3)
        yield Verdict(
            figure=f"usual.memory.{source}",
            row="usual",
            value=ours["peak_mib"],
            unit="MiB",
            peer=_USUAL_WAY,
            peer_value=usual["peak_mib"],
            ratio=share,
            target="≤ 0.1 ×",
            holds=share <= ONE_TENTH,
        )


def _memory(figures: Figures) -> Iterator[Verdict]:
    """Of a worker by the size of results, then of a job's process alone."""
    for name, sizes in figures.items():
        if name.startswith("memory.") and "ratio_to_smallest" in sizes:
            smallest, largest = sizes["result_mb"][0], sizes["result_mb"][-1]
            yield Verdict(
                figure=f"{name}.flat",
                row="memory",
                value=max(sizes["peak_mib"]),
                unit="MiB",
                peer=f"a result of {smallest} MB instead of {largest}",
                peer_value=sizes["peak_mib"][0],
                ratio=sizes["ratio_to_smallest"],
                target="≤ 1.1 ×",
                holds=sizes["ratio_to_smallest"] <= 1.1,
            )
            yield _growth(f"{name}.growth", sizes, GROWTH_MIB)
    for source in SOURCES:
        for name, most in (("sealed_to_folder", GROWTH_MIB), ("large_rows", LARGE_GROWTH_MIB)):
            if (line := figures.get(f"{source}.{name}")) is not None:
                yield _growth(f"memory.{source}.{name}", line, most)


def _growth(figure: str, line: Line, most: float) -> Verdict:
    return Verdict(
        figure=figure,
        row="memory",
        value=line["peak_growth_mib"],
        unit="MiB",
        target=f"< {most} MiB",
        holds=line["peak_growth_mib"] < most,
    )


def _slowed(figures: Figures) -> Iterator[Verdict]:
    if (line := figures.get("slowed.four_sources")) is not None:
        yield Verdict(
            figure="slowed.together",
            row="slowed",
            value=max(line["together_seconds"]),
            unit="s",
            peer="the slowest alone",
            peer_value=max(line["slowest_alone_seconds"]),
            ratio=line["ratio_to_slowest"],
            target="≤ 1.3 ×",
            holds=line["ratio_to_slowest"] <= 1.3,
        )


def _lateness(figures: Figures) -> Iterator[Verdict]:
    for source in SOURCES:
        idle = figures.get(f"{source}.idle")
        for name in ("sealed_to_folder", "large_rows"):
            line = figures.get(f"{source}.{name}")
            if line is not None and idle is not None:
                worst = max(line["loop_late_ms"])
                yield Verdict(
                    figure=f"lateness.{source}.{name}",
                    row="lateness",
                    value=worst,
                    unit="ms",
                    peer="a process that only waits",
                    peer_value=max(idle["loop_late_ms"]),
                    target=f"< {LATE_MS} ms",
                    holds=worst < LATE_MS,
                )


def _create_job(figures: Figures) -> Iterator[Verdict]:
    for store in ("sqlite", "mongodb"):
        if (line := figures.get(f"http.create_job.{store}")) is not None:
            yield Verdict(
                figure=f"create_job.{store}",
                row="create_job",
                value=line["p99_ms"],
                unit="ms",
                target=f"< {CREATE_MS} ms",
                holds=line["p99_ms"] < CREATE_MS,
            )
