"""What a job's time goes to: who is busy for how much of it, and so what binds."""

from collections.abc import Mapping
from typing import Final

from benchmarks.judging import SOURCES
from benchmarks.tables import table
from benchmarks.verdicts import Line

MUCH_MORE: Final = 1.2
"""Times: less is called alike."""

_HEAD: Final = (
    *("way", "seconds", "CPU, server", "CPU, client or job", "server's share of a core"),
    *("ours", "binds on idle cores"),
)
_WAYS: Final = (
    ("postgresql", "psql_row_to_json"),
    ("postgresql", "connector"),
    ("postgresql", "sealed_to_folder"),
    ("mysql", "mysql_quick"),
    ("mysql", "connector"),
    ("mysql", "sealed_to_folder"),
    ("mongodb", "connector"),
    ("mongodb", "sealed_to_folder"),
)


def binding_table(figures: Mapping[str, Line]) -> str:
    rows = []
    for source, way in _WAYS:
        line = figures.get(f"{source}.{way}")
        if line is not None and "server_cores" in line:
            server, ours = line["server_cpu_seconds"], line["cpu_seconds"]
            rows.append(
                (
                    f"{SOURCES[source]}, `{way}`",
                    f"{line['seconds']:g}",
                    f"{server:g}",
                    f"{ours:g}",
                    f"{line['server_cores']:.2f}",
                    f"{ours / line['seconds']:.2f}",
                    binds(server, ours),
                )
            )
    return table(_HEAD, rows)


def binds(server_seconds: float, our_seconds: float) -> str:
    """Whoever needs more CPU, as each has one core at most."""
    if server_seconds >= MUCH_MORE * our_seconds:
        return "the server's session"
    if our_seconds >= MUCH_MORE * server_seconds:
        return "the client or job"
    return "both alike"
