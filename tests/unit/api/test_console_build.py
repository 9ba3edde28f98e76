"""The committed page is what its sources make."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fetcher.domain.tls_modes import TLS_MODES, VERIFYING_TLS_MODES

SOURCES = Path(__file__).resolve().parents[3] / "console"
BUILT = SOURCES.parent / "fetcher" / "api" / "console"
INPUTS = ("package.json", "package-lock.json", "tsconfig.json", "build.mjs", "index.html")
SECONDS = 120


def digest_of_sources() -> str:
    """As ``console/build.mjs`` takes it: names and contents, in the order of the names."""
    names = [*INPUTS, "icon.svg"]
    names += [
        path.relative_to(SOURCES).as_posix()
        for path in (SOURCES / "src").rglob("*")
        if path.is_file()
    ]
    digest = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((SOURCES / name).read_bytes()).hexdigest()
        digest.update(f"{content}  {name}\n".encode())
    return digest.hexdigest()


def test_the_page_was_built_from_these_sources() -> None:
    """Else: ``make console``."""
    assert json.loads((BUILT / "console.json").read_text())["sources"] == digest_of_sources()


def run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not here")
def test_the_sources_make_this_page_byte_for_byte(tmp_path: Path) -> None:
    copy = tmp_path / "console"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(BUILT, tmp_path / "fetcher" / "api" / "console")
    installed = run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], copy)
    if installed.returncode != 0:
        pytest.skip("the page's tools cannot be had: no registry of npm's answers")
    checked = run(["node", "build.mjs", "--check"], copy)
    assert (checked.returncode, checked.stderr) == (0, "")
    types = run(["npx", "tsc", "--noEmit"], copy)
    assert (types.returncode, types.stdout) == (0, "")


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (SOURCES / "package-lock.json").read_text()


def test_licences_lie_beside_the_page() -> None:
    text = (BUILT / "LICENSES.txt").read_text()
    dependencies = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    for name, version in dependencies.items():
        assert f"{name} {version} (MIT)" in text
    assert text.count("Permission is hereby granted, free of charge") >= len(dependencies)


def test_the_form_knows_the_tls_modes_of_each_type() -> None:
    text = (SOURCES / "src" / "pages" / "connection-form.tsx").read_text()
    told = re.findall(
        r"^  ([A-Z_]+): \{ label: .*modes: (\[.*?\]), needsCa: (\[.*?\]) \},$", text, re.MULTILINE
    )
    assert {
        name: (tuple(json.loads(modes)), frozenset(json.loads(ca))) for name, modes, ca in told
    } == {
        str(name): (modes, VERIFYING_TLS_MODES.intersection(modes))
        for name, modes in TLS_MODES.items()
    }
