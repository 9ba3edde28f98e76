"""The console's files: served from the package under a strict policy, and switched off."""

import gzip
import re
from importlib.resources import files

import pytest

from fetcher.api.console_page import PAGE
from fetcher.api.page_files import media_type
from fetcher.api.services import HttpSettings
from tests.unit.api.harness import an_api

FOLDER = files("fetcher.api").joinpath("console")


@pytest.mark.parametrize("name", PAGE.names)
async def test_files_of_the_page_are_served_as_they_are(name: str) -> None:
    answered = await an_api().get(f"/console/{name}")
    assert answered.status == 200
    assert answered.headers["Content-Type"] == media_type(name)
    assert answered.raw == FOLDER.joinpath(name).read_bytes()
    assert answered.headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


async def test_a_file_is_packed_for_who_takes_it_and_sent_once() -> None:
    api = an_api()
    packed = await api.get("/console/console.js", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.raw) == FOLDER.joinpath("console.js").read_bytes()
    plain = await api.get("/console/console.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in plain.headers
    etag = packed.headers["ETag"]
    again = await api.get("/console/console.js", headers={"If-None-Match": etag})
    assert (again.status, again.raw) == (304, b"")
    other = await api.get("/console/console.js", headers={"If-None-Match": 'W/"other"'})
    assert other.status == 200


@pytest.mark.parametrize(
    ("path", "target"), [("/console", "console/index.html"), ("/console/", "index.html")]
)
async def test_the_root_leads_to_the_page_also_below_a_path_of_a_proxys(
    path: str, target: str
) -> None:
    answered = await an_api().get(path)
    assert (answered.status, answered.headers["Location"]) == (307, target)


@pytest.mark.parametrize(
    "path", ["/console/console.json", "/console/../asgi.py", "/console/..%2fasgi.py", "/console/x"]
)
async def test_nothing_else_is_served(path: str) -> None:
    assert (await an_api().get(path)).status == 404


@pytest.mark.parametrize("path", ["/console", "/console/", "/console/index.html"])
async def test_it_can_be_switched_off(path: str) -> None:
    api = an_api(settings=HttpSettings(console=False))
    assert (await api.get(path)).status == 404
    assert (await api.get("/swagger/index.html")).status == 200


def test_the_page_has_no_script_or_style_in_itself_and_none_of_others() -> None:
    page = FOLDER.joinpath("index.html").read_text()
    assert set(re.findall(r'(?:src|href)="([^"]+)"', page)) == {
        "icon.svg",
        "console.css",
        "console.js",
    }
    assert not re.search(r"<style|<script>|style=|\son[a-z]+=", page)
    for name in ("console.js", "console.css"):
        text = FOLDER.joinpath(name).read_text()
        named = set(re.findall(r"https?://[^\s\"'`)]+", text))
        # names of XML's vocabularies, which nothing is loaded from
        assert all(each.startswith("http://www.w3.org/") for each in named), named
