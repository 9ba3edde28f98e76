"""Rules of the image that are seen without building it."""

import re
import tomllib

from tests.unit.deployment.files import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LINES = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
INSTRUCTIONS = [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in LINES if line]


def those(word: str) -> list[str]:
    return [rest for name, rest in INSTRUCTIONS if name == word]


def final(word: str) -> list[str]:
    """Of the last stage."""
    last = max(number for number, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM")
    return [rest for name, rest in INSTRUCTIONS[last:] if name == word]


def test_both_stages_stand_on_one_base_that_a_release_pins() -> None:
    assert INSTRUCTIONS[0] == ("ARG", 'PYTHON_DIGEST=""')
    assert those("FROM") == [
        "python:3.13-slim${PYTHON_DIGEST} AS build",
        "python:3.13-slim${PYTHON_DIGEST}",
    ]


def test_nothing_is_fetched_but_what_has_a_hash() -> None:
    assert those("ADD") == []
    installs = [part for run in those("RUN") for part in run.split("&&") if "pip install" in part]
    assert len(installs) == 2
    for install in installs:
        assert ("--require-hashes" in install) != ("--no-index" in install), install
    assert not re.search(r"curl|wget|apt-get|https?://", TEXT)


def test_it_runs_as_nobody_in_particular_and_writes_in_two_folders() -> None:
    assert final("USER") == ["1001:1001"]
    (made,) = final("RUN")
    assert "--uid 1001" in made
    assert "-o 1001 -g 1001 /data /spool" in made
    assert "chown" not in TEXT
    assert "FETCHER_DATA_DIR=/data" in final("ENV")[0]


def test_the_process_is_the_first_one_and_gets_the_signal() -> None:
    assert final("ENTRYPOINT") == ['["fetcher"]']
    assert final("CMD") == ['["--role=all"]']
    assert final("STOPSIGNAL") == ["SIGTERM"]
    (check,) = final("HEALTHCHECK")
    assert check.endswith('CMD ["python", "-m", "fetcher.healthcheck"]')


def test_no_secret_is_built_in() -> None:
    for kind in ("ENV", "ARG"):
        for text in those(kind):
            assert not re.search(r"PASS|SECRET|TOKEN|KEY|INDEX_URL", text), text
    mounts = re.findall(r"--mount=(\S+)", TEXT)
    assert mounts == ["type=secret,id=pip,target=/etc/pip.conf"]


def test_what_is_copied_is_let_through_and_nothing_else_is() -> None:
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source for text in those("COPY") if "--from" not in text for source in text.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / path).exists() for path in allowed)


def test_what_the_build_needs_of_the_project_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    copied = " ".join(those("COPY")).split()
    assert {project["readme"], *project["license-files"]} <= set(copied)
    # built without isolation: the build tools are among the pinned
    assert "-r build.in" in (ROOT / "requirements" / "runtime.in").read_text(encoding="utf-8")
