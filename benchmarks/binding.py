"""What a job's time goes to: who is busy for how much of it, and so what binds."""

from collections.abc import Mapping
from typing import Final

from benchmarks.judging import SOURCES
from benchmarks.tables import table
from benchmarks.verdicts import Line

BUSY: Final = 0.85
"""Of a core: one session of a server, and one interpreter, use one at most."""

_HEAD: Final = (
    *("way", "seconds", "CPU, server", "CPU, client or job", "server's share of a core"),
    *("ours", "binds"),
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
            server, ours = float(line["server_cores"]), line["cpu_seconds"] / line["seconds"]
            rows.append(
                (
                    f"{SOURCES[source]}, `{way}`",
                    f"{line['seconds']:g}",
                    f"{line['server_cpu_seconds']:g}",
                    f"{line['cpu_seconds']:g}",
                    f"{server:.2f}",
                    f"{ours:.2f}",
                    binds(server, ours),
                )
            )
    return table(_HEAD, rows)


def binds(server_cores: float, our_cores: float) -> str:
    """By the share of a core that each keeps busy."""
    if server_cores >= BUSY and our_cores >= BUSY:
        return "both, each a core"
    if server_cores >= BUSY:
        return "the server's session"
    if our_cores >= BUSY:
        return "our process"
    return "neither alone: the machine's other work, or waiting in turns"
