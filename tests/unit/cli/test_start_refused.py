"""A start that is refused has opened nothing (spec configuration 17.2)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WATCHED_START = """
import json, sys
seen = []
def watch(event, arguments):
    if event.startswith("socket."):
        seen.append(event)
sys.addaudithook(watch)
from fetcher.cli import main
sys.argv = ["fetcher", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    print(json.dumps({"code": ended.code, "seen": seen}))
"""


@pytest.mark.parametrize("command", [["--role=worker"], ["check-config", "--role=worker"]])
def test_nothing_is_opened_before_all_violations_are_told(
    command: list[str], tmp_path: Path
) -> None:
    environment = {
        "PATH": "/usr/bin",
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "DEPLOYMENT_MODE": "saas",
        "LOG_LEVEL": "loud",
        "MONGO_URI": "mongodb://bob:pw1@db.example:27017/x",
        "MONGO_NAME": "fetcher",
        "RABBITMQ_HOST": "rabbit.example",
        "OBJECT_STORAGE_BUCKET": "results",
    }
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED_START, *command],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(ended.stdout) == {"code": 2, "seen": []}
    names = [line.split(": ")[1] for line in ended.stderr.splitlines()]
    assert names == [
        "LOG_LEVEL",
        "DEPLOYMENT_MODE",
        "DEPLOYMENT_MODE",
        "APP_ENC_KEY",
        "RABBITMQ_DEFAULT_USER",
        "RABBITMQ_DEFAULT_PASS",
        "STREAMING_ENABLED",
        "RABBITMQ_JOB_EVENTS_EXCHANGE",
        "STREAMING_CLOUDEVENTS_SOURCE",
    ]
    assert "pw1" not in ended.stderr
    assert list(tmp_path.iterdir()) == []
