"""Every block of commands in the documentation is run by a test, or says why not."""

from collections.abc import Mapping
from typing import Final

import pytest

from tests.e2e.documented import ROOT, ShellBlock, shell_blocks

PAGES: Final = "tests/e2e/test_documented_pages.py"
RUN_BY: Final[Mapping[str, Mapping[str, str]]] = {
    "README.md": {"example": PAGES},
    "docs/quick-start.md": dict.fromkeys(
        (
            *("source", "connection", "job", "open"),
            *("files", "declare", "start", "result", "stop"),
        ),
        PAGES,
    ),
    "docs/security.md": {"audit": PAGES},
    "docs/operations.md": dict.fromkeys(("backup", "terminal"), PAGES),
    "docs/upgrade.md": dict.fromkeys(("backup", "rotate"), PAGES),
    "docs/migration.md": dict.fromkeys(
        ("declare", "delete", "letters"), "tests/faults/test_work_queue_change.py"
    ),
    "docs/tenants.md": dict.fromkeys(("new", "ready", "look"), "tests/e2e/test_tenants_page.py"),
    "docs/results-and-events.md": dict.fromkeys(
        ("keys", "verify", "open", "downloaded"), "tests/e2e/test_results_and_events_page.py"
    ),
}
"""Page to block to the module that runs it."""

NEEDS_MORE: Final = {"docs/deployment.md": "a container engine or a cluster"}
"""Whole pages whose commands nothing on a test machine can run."""


def _pages() -> list[str]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def _unaccounted(page: str, text: str) -> list[ShellBlock]:
    run = RUN_BY.get(page, {})
    return [each for each in shell_blocks(text) if not each.reason and each.name not in run]


@pytest.mark.parametrize("page", [page for page in _pages() if page not in NEEDS_MORE])
def test_every_shell_block_is_run_or_says_why_not(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert _unaccounted(page, text) == []
    names = {each.name for each in shell_blocks(text) if each.name}
    assert names == set(RUN_BY.get(page, {}))


def test_a_block_without_name_or_reason_is_found() -> None:
    text = (
        "```sh\nrm\n```\n```bash other\nls\n```\n"
        "<!-- not run: a cluster -->\n```sh\nx\n```\n```sh backup\ny\n```\n"
    )
    assert _unaccounted("docs/operations.md", text) == [
        ShellBlock(None, None),
        ShellBlock("other", None),
    ]


@pytest.mark.parametrize("page", RUN_BY)
def test_the_module_that_runs_a_block_names_it(page: str) -> None:
    for name, module in RUN_BY[page].items():
        code = (ROOT / module).read_text(encoding="utf-8")
        assert f'{page.removeprefix("docs/")}"' in code
        assert f'"{name}"' in code
