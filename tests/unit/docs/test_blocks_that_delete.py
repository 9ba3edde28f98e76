"""A block of commands that deletes goes on after nothing that failed, wherever it is pasted."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.documented import ROOT, blocks

SHELL = re.compile(r"^```(?:sh|bash|shell|console)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DELETES = re.compile(r"\b(purge|delete_queue|rm|rmdir|drop|dropdb|prune)\b")
RECORDED = """
record() { printf '%s\\n' "$*" >> ran; case "$*" in *"$FAILING"*) return 1;; esac; }
fetcher() { record fetcher "$@"; }
rabbitmqctl() { record rabbitmqctl "$@"; }
"""
LETTERS = (
    "fetcher dlq redrive",
    "fetcher dlq export letters.jsonl",
    "fetcher dlq purge --listed letters.jsonl --yes",
    "rabbitmqctl delete_queue fetcher.dlq --if-empty",
    "fetcher topology declare",
)


def ran(script: str, folder: Path, *, failing: str) -> list[str]:
    """The commands that were reached in a shell that does not end at a failure, as at a prompt."""
    subprocess.run(
        ["/bin/sh", "-c", RECORDED + script],
        cwd=folder,
        env={"FAILING": failing},
        capture_output=True,
        timeout=30,
        check=False,
    )
    return (folder / "ran").read_text().splitlines()


@pytest.mark.parametrize("failing", range(len(LETTERS)))
def test_letters_are_thrown_away_after_nothing_that_failed(tmp_path: Path, failing: int) -> None:
    script = blocks("migration.md")["letters"]
    reached = ran(script, tmp_path, failing=LETTERS[failing])
    # A redrive that skips some ends by 1: those are what is saved.
    assert reached == list(LETTERS if failing == 0 else LETTERS[: failing + 1])


def deletions_that_follow_anything(script: str) -> list[str]:
    """Commands that delete, after another that is not chained to them."""
    commands = script.replace("\\\n", " ").replace("&&\n", "&& ").strip().splitlines()
    return [line for line in commands[1:] if DELETES.search(line.split("&&")[0])]


def pages() -> list[str]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


@pytest.mark.parametrize("page", pages())
def test_what_deletes_is_chained_to_what_comes_before_it(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [
        found for each in SHELL.findall(text) for found in deletions_that_follow_anything(each)
    ] == []


def test_deletion_that_is_not_chained_is_found() -> None:
    assert deletions_that_follow_anything("save > x\nfetcher dlq purge --yes\n") == [
        "fetcher dlq purge --yes"
    ]
    assert deletions_that_follow_anything("save x &&\n  fetcher dlq purge --yes\n") == []
