"""``make bench``: every figure as a JSON line, beside its peer from the same run.

``python -m benchmarks [--lines FILE] [--rounds N] [PART …]``. Each part is a process of its own;
one that fails is told and leaves the others alone. The lines go to standard output and to the file:
the machine, what was measured, and the verdicts on the design's table, which also stand as a table
on standard error. ``python -m benchmarks.document`` makes docs/performance.md of the file.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks import tenants
from benchmarks.judging import judge
from benchmarks.tables import verdict_table
from benchmarks.verdicts import Line

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "machine": (),
    "sealing": (),
    "encoder": ("--encoder-rounds", "9"),
    "mongodb": ("--mongodb-rounds", "9"),
    "mongodb_job": ("--rounds", "3"),
    "postgresql": ("--rounds", "5"),
    "mysql": ("--rounds", "5"),
    "memory": ("--largest", "320"),
    "slowed": ("--rounds", "3"),
    "http_api": ("--rounds", "3"),
    "worker": ("--rounds", "3"),
    "console": (),
    "tenants": tenants.SHORT,
}
"""Modules of this package, and their arguments for a run of some 12 minutes."""

PART_SECONDS: Final = 3600
"""A part that takes longer is killed, and has failed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=Path, default=Path("bench-results/bench.jsonl"))
    parser.add_argument("--rounds", type=int, help="of each part that has rounds; else its own")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all of them if none")
    arguments = parser.parse_args()
    wanted: list[str] = arguments.parts or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    arguments.lines.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    measured: list[Line] = []
    with arguments.lines.open("w", encoding="utf-8") as written:

        def tell(text: str) -> None:
            print(text, flush=True)
            written.write(text + "\n")
            written.flush()

        for part in wanted:
            started = time.perf_counter()
            try:
                for text in _lines_of(part, _arguments(part, arguments.rounds)):
                    tell(text)
                    measured.append(json.loads(text))
            except subprocess.SubprocessError:
                failed.append(part)
            seconds = time.perf_counter() - started
            ended = "failed" if part in failed else "done"
            print(f"{part}: {ended} after {seconds:.0f} s", file=sys.stderr, flush=True)
        verdicts = judge(measured)
        for verdict in verdicts:
            tell(verdict.line())
    print(f"\n{verdict_table(verdicts)}", file=sys.stderr)
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _arguments(part: str, rounds: int | None) -> Sequence[str]:
    own = PARTS[part]
    return [*own[:-1], str(rounds)] if rounds and "rounds" in "".join(own) else own


def _lines_of(part: str, arguments: Sequence[str]) -> Iterator[str]:
    """Raise SubprocessError where it fails; what it said until then has been given."""
    command = [sys.executable, "-m", f"benchmarks.{part}", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        late = threading.Timer(PART_SECONDS, process.kill)
        late.start()
        try:
            for text in process.stdout:
                if text.startswith("{"):
                    yield text.rstrip("\n")
            code = process.wait()
        finally:
            late.cancel()
    if code:
        raise subprocess.CalledProcessError(code, command)


if __name__ == "__main__":
    sys.exit(main())
