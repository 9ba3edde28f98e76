"""MongoDB to a sealed object, beside the usual way, from one recorded stream of batches.

``python -m benchmarks.mongodb_job [--rounds N]``. The server only replays
(:mod:`benchmarks.mongodb_replay`): what a real one costs is not in these figures. What our way
costs beside decoding is ``benchmarks.mongodb``.
"""

from functools import partial

from benchmarks.mongodb_replay import PORT_VARIABLE, replaying
from benchmarks.source_rounds import Run, SourceRounds, in_turns, rounds_of


def main() -> None:
    count = rounds_of(__doc__)
    with replaying() as (port, pid):
        rounds = SourceRounds("mongodb", server_pid=pid, environment={PORT_VARIABLE: str(port)})
        names = ["connector", "sealed_to_folder", "large_rows"]
        measured: dict[str, Run] = {
            name: partial(rounds.watched, partial(rounds.ours, name)) for name in names
        }
        measured["idle"] = partial(rounds.ours, "idle")
        runs = in_turns(measured, count, few={*measured} - {"sealed_to_folder"})
        runs["usual"] = [rounds.watched(rounds.usual)]
        rounds.report(runs)


if __name__ == "__main__":
    main()
