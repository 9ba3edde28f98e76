"""MariaDB to a sealed object, beside the ``mysql`` client with a JSON query in the same run.

``python -m benchmarks.mysql [--rounds N]``, as ``benchmarks.postgresql``. The server is
``FETCHER_BENCH_MARIADB_HOST`` and its companions.
"""

from functools import partial
from typing import Final

from benchmarks.cpu_time import listener
from benchmarks.mysql_tables import DATABASE, prepare, server
from benchmarks.sizes import TABLE
from benchmarks.source_rounds import Run, SourceRounds, in_turns, rounds_of

PEER: Final = "mysql_quick"

_QUERY: Final = rf"""SELECT CONCAT('{{"active":', active, ',"amount":"', amount, '","big":', big,
 ',"created":"', REPLACE(created, ' ', 'T'), 'Z","day":"', day, 'T00:00:00Z","doc":', doc,
 ',"id":', id, ',"name":', JSON_QUOTE(name), ',"score":', IFNULL(score, 'null'), ',"uid":',
 JSON_QUOTE(uid), '}}') FROM {TABLE}"""


def main() -> None:
    count = rounds_of(__doc__)
    prepare()
    address = server()
    rounds = SourceRounds("mysql", server_pid=listener(address["port"]))
    where = [f"-h{address['host']}", f"-P{address['port']}", f"-u{address['user']}"]
    options = ["-q", "-N", "-r", "--default-character-set=utf8mb4", *where]
    client = ["mysql", *options, "-e", _QUERY, DATABASE]
    names = ["connector", "sealed_to_folder", "large_rows", "schema"]
    measured: dict[str, Run] = {
        PEER: partial(
            rounds.watched, partial(rounds.client, client, MYSQL_PWD=address["password"])
        ),
        **{name: partial(rounds.watched, partial(rounds.ours, name)) for name in names},
        "idle": partial(rounds.ours, "idle"),
    }
    runs = in_turns(measured, count, few={*measured} - {PEER, "sealed_to_folder"})
    runs["usual"] = [rounds.usual()]
    rounds.report(runs, PEER)


if __name__ == "__main__":
    main()
