#!/usr/bin/env python3
"""Brings up the servers that tests need, and takes down those that it started.

    scripts/services.py up|down|status

`up` uses a server that runs on its usual port of the loopback address and lets us in; else it
starts one from an installed package on a free port; else, as root on Debian, it installs the
package first (the system starts nothing of it); else it stops and says what is missing. Programs
that tests run (promtool) are installed likewise, and done without where that is not possible. A
server named by a FETCHER_TEST_* variable is taken as it is. `up` may be repeated. Tests read
.services/env, which it writes; the environment goes before it. `down` ends what `up` started and
nothing else.

FETCHER_SERVICES=private makes `up` start its own servers even where others run.
Exit codes: 0 done (status: all answer), 1 something is missing or failed, 2 wrong use.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.servers import debian, lifecycle, tools
from scripts.servers.catalogue import LOOPBACK, ROOT, SERVICES
from scripts.servers.daemons import DaemonError
from scripts.servers.state import State, StateError, locked
from scripts.servers.testserver_venv import VenvError

FOLDER = ROOT / ".services"


def up() -> int:
    """Bring everything up and print where it is."""
    with locked(FOLDER):
        state = State.load(FOLDER)
        lifecycle.up(
            state,
            SERVICES,
            environment=os.environ,
            install=_install if debian.can_install() else None,
            for_others=os.geteuid() == 0,
        )
        absent = tools.provide(_install if debian.can_install() else None)
        _print_table(state)
    if absent:
        print(f"services: not here, so their tests are skipped: {', '.join(absent)}")
    return 0


def down() -> int:
    """End what we started."""
    with locked(FOLDER):
        state = State.load(FOLDER)
        ours = [name for name, running in state.running.items() if running.daemons]
        late = lifecycle.down(state, list(state.running))
        (FOLDER / "env").unlink(missing_ok=True)
    print(f"services: ended {', '.join(ours)}" if ours else "services: nothing of ours was running")
    if late:
        print(f"services: had to be killed: {', '.join(late)}", file=sys.stderr)
    return 0


def status() -> int:
    """Print where everything is and whether it answers."""
    with locked(FOLDER):
        return 0 if _print_table(State.load(FOLDER)) else 1


def _install(packages: Sequence[str]) -> None:
    print(f"services: installing {', '.join(packages)}", flush=True)
    debian.install(packages, run=debian.run_apt)


def _print_table(state: State) -> bool:
    all_answer = True
    for service in SERVICES:
        running = state.running.get(service.name)
        if running:
            reason = lifecycle.refusal(service, running.port)
            row = f"{running.origin:<10} {LOOPBACK}:{running.port:<6} {reason or 'answers'}"
        elif os.environ.get(service.variable):
            reason, row = None, f"named      by {service.variable}"
        else:
            reason = row = "not up"
        all_answer = all_answer and reason is None
        print(f"  {service.name:<11} {row}")
    return all_answer


def _interrupted(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    commands = {"up": up, "down": down, "status": status}
    if len(arguments) != 1 or arguments[0] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    if os.environ.get("FETCHER_SERVICES", "") not in ("", "private"):
        print("services: FETCHER_SERVICES is 'private' or unset", file=sys.stderr)
        return 2
    try:
        return commands[arguments[0]]()
    except (
        lifecycle.MissingError,
        debian.InstallationError,
        DaemonError,
        StateError,
        VenvError,
        OSError,  # most likely a folder or process of another user
    ) as failure:
        print(f"services: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupted)
    sys.exit(main(sys.argv[1:]))
