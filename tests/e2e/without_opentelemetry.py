"""The command where OpenTelemetry is not installed; run by ``python -m``."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Blocked:
    """A finder that has none of it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> None:
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def refused_start(folder: Path) -> tuple[int, str]:
    """Exit code and standard error of a start that wants traces."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "ENABLE_TELEMETRY": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "127.0.0.1:4318",
    }
    done = subprocess.run(
        [sys.executable, "-m", __name__, "--role=all"],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    from fetcher.cli import main

    main()
