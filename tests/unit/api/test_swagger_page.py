"""The API document as a page: served from the package, and from nowhere else."""

import json
import re

import pytest

from fetcher.api.page_files import media_type
from fetcher.api.swagger_page import PAGE
from scripts.swagger_ui import FOLDER, RECORD, digests
from tests.unit.api.harness import an_api


@pytest.mark.parametrize("name", PAGE.names)
async def test_files_of_the_page_are_served_as_they_are(name: str) -> None:
    answered = await an_api().get(f"/swagger/{name}")
    assert answered.status == 200
    assert answered.headers["Content-Type"] == media_type(name)
    assert answered.raw == (FOLDER / name).read_bytes()
    assert "frame-ancestors 'none'" in answered.headers["Content-Security-Policy"]
    assert "script-src 'self';" in answered.headers["Content-Security-Policy"]
    assert answered.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/swagger/LICENSE", "/swagger/../api.py", "/swagger/..%2fasgi.py", "/swagger/doc.json"]
)
async def test_nothing_else_is_served(path: str) -> None:
    assert (await an_api().get(path)).status == 404


async def test_page_loads_its_own_files_and_the_document() -> None:
    page = (FOLDER / "index.html").read_text()
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert set(loaded) - {"data:,"} == {"swagger-ui.css", "swagger-ui-bundle.js", "start.js"}
    assert "<script>" not in page
    start = (FOLDER / "start.js").read_text()
    assert 'url: "../openapi.json"' in start
    assert "validatorUrl: null" in start
    assert (await an_api().get("/openapi.json")).status == 200


async def test_the_page_is_no_part_of_the_document() -> None:
    document = (await an_api().get("/openapi.json")).json
    assert not [path for path in document["paths"] if path.startswith("/swagger")]


def test_committed_files_are_those_of_the_recorded_version() -> None:
    record = json.loads((FOLDER / RECORD).read_text())
    assert record["sha256"] == digests()
    assert record["package"] == "swagger-ui-dist"
    assert "Apache License" in (FOLDER / "LICENSE").read_text()
