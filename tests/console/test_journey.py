"""A person's first visit, from an empty service to the downloaded result."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser import keep_picture
from tests.console.places import PRODUCT, a_service, console
from tests.e2e.cluster import Api, opened


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with a_service(tmp_path) as (_, served):
        yield served


def test_from_the_first_visit_to_the_downloaded_result(
    api: Api, page: Page, tmp_path: Path
) -> None:
    page.goto(f"http://127.0.0.1:{api.port}/console")
    expect(page.get_by_text("No connection yet")).to_be_visible()

    page.get_by_role("link", name="New connection").click()
    page.get_by_label("Type").select_option("SQLITE")
    page.get_by_label("Name", exact=False).first.fill("x")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("3 to 100 letters, digits, - and _", exact=True)).to_be_visible()
    form = page.locator("form.form")
    form.get_by_label("Product").fill(PRODUCT)
    form.get_by_label("Name").fill("shop")
    form.get_by_label("File").fill("shop.db")
    form.get_by_role("button", name="Register").click()
    expect(page.get_by_text("shop is registered")).to_be_visible()

    page.get_by_role("button", name="Test shop").click()
    expect(page.get_by_text(re.compile(r"reached in \d+ ms"))).to_be_visible()

    page.get_by_role("link", name="Schema shop").click()
    page.get_by_role("button", name=re.compile("^items")).click()
    fields = page.get_by_role("region", name="items").get_by_role("row")
    expect(fields).to_have_count(5)
    expect(fields.nth(4)).to_have_text("priceREALyes")
    page.get_by_role("link", name="Use in a job").click()

    table = page.get_by_role("region", name="shop · items")
    expect(table.get_by_label("All fields")).to_be_checked()
    table.get_by_label("made").uncheck()
    table.get_by_label("Field", exact=True).select_option("price")
    table.get_by_role("button", name="Add filter").click()
    table.get_by_label("Operator: price").select_option("between")
    table.get_by_label("From: price").fill("10,5")
    expect(table.get_by_text("A number, such as 12.5")).to_be_visible()
    for button in ("Check", "Run"):
        expect(page.get_by_role("button", name=button, exact=True)).to_be_disabled()
    expect(page.get_by_text("in the filter on price")).to_be_visible()
    table.get_by_label("From: price").fill("10")
    expect(table.get_by_text("A number, such as 12.5")).to_have_count(0)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    table.get_by_label("To: price").fill("11.5")
    expect(page.get_by_text("in the filter on price")).to_have_count(0)
    written = page.get_by_label("The request").last
    expect(written).to_have_value(re.compile(r'"between": \[\s*10,\s*11.5\s*\]'))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Sources, tables and fields are there.")).to_be_visible()
    keep_picture(page, "journey-builder")
    page.set_viewport_size({"width": 360, "height": 740})
    keep_picture(page, "journey-builder-360")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("button", name="Run").click()

    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("completed")
    expect(heading).to_contain_text(f"Job {page.url[-8:]}")
    expect(page.get_by_text("7 rows", exact=False).first).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    shown = page.get_by_role("region", name="shop · items").get_by_role("row")
    expect(shown).to_have_count(8)
    expect(shown.nth(1)).to_have_text("40Größe <b>40</b>10")
    keep_picture(page, "journey-result")

    job_id = page.url.rpartition("/")[2]
    with page.expect_download() as download:
        page.get_by_role("button", name="Signed and encrypted").click()
    stored = tmp_path / "fetcher-data" / "objects" / api.job(job_id)["resultPath"]
    assert Path(download.value.path()).read_bytes() == stored.read_bytes()
    download.value.save_as(tmp_path / download.value.suggested_filename)
    job = api.job(job_id)
    expect(page.get_by_text(f"({job['sizeBytes']} bytes)", exact=True)).to_be_visible()
    document = opened(tmp_path, job_id)
    assert len(document["shop"]["items"]) == 7
    commands = page.get_by_role("region", name="Open the result").locator("pre").all_inner_texts()
    assert [command.split()[1] for command in commands] == ["open-file", "open-result"]
    for command in commands:
        (tmp_path / "result.json").unlink(missing_ok=True)
        ended = run_fetcher(command, tmp_path)
        assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
        assert json.loads((tmp_path / "result.json").read_text()) == document


def run_fetcher(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """As a person would who copies it into a shell."""
    script = f'fetcher() {{ {shlex.quote(sys.executable)} -m fetcher "$@"; }}; {command}'
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_request_is_edited_as_json_and_by_clicking_alike(api: Api, page: Page) -> None:
    api.connect({"configName": "shop", "type": "SQLITE", "databaseName": "shop.db"})
    page.goto(console(api, "/build"))
    written = page.get_by_label("The request").last
    written.fill("{")
    expect(page.get_by_text("This is no request yet")).to_be_visible()
    expect(page.get_by_role("button", name="Run")).to_be_disabled()
    written.fill(
        '{"dataRequest": {"mappedFields": {"shop": {"items": ["id", "name"]}},'
        ' "filters": {"shop": {"items": {"name": {"like": ["Gr%"]}}}}},'
        ' "metadata": {"source": "acme-reports", "note": "x"}}'
    )
    table = page.get_by_role("region", name="shop · items")
    expect(table.get_by_label("Value: name")).to_have_value("Gr%")
    # what is written is its writer's own: only what was clicked keeps a job from running
    value = written.input_value()
    written.fill(value.replace('"name": {', '"id": {"eq": ["x"]}, "name": {'))
    expect(table.get_by_label("Value: id")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    written.fill(value)
    table.get_by_label("price").check()
    expect(written).to_have_value(re.compile('"name",\\s*"price"'))
    expect(written).to_have_value(re.compile('"note": "x"'))
    table.get_by_role("button", name="Remove the filter on name").click()
    expect(written).not_to_have_value(re.compile("filters"))


def test_what_no_job_could_take_is_told_before_it_runs(api: Api, page: Page) -> None:
    api.connect({"configName": "shop", "type": "SQLITE", "databaseName": "shop.db"})
    page.goto(console(api, "/build?source=shop&table=items"))
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_enabled()
    product = page.get_by_role("region", name="What is asked for").get_by_label("Product")
    product.fill(" ")
    expect(page.get_by_text("This is needed")).to_be_visible()
    expect(run).to_be_disabled()
    product.fill(PRODUCT)
    expect(run).to_be_enabled()
    table = page.get_by_role("region", name="shop · items")
    table.get_by_label("Field", exact=True).select_option("made")
    table.get_by_role("button", name="Add filter").click()
    expect(page.get_by_text("A value is missing, or cannot be one")).to_be_visible()
    expect(run).to_be_disabled()
    value = table.get_by_label("Value: made")
    for day, is_one in (
        ("2026-02-30", False),
        ("2028-02-29", True),
        ("2100-02-29T00:00:00Z", False),
        ("2026-13-01", False),
        ("2026-04-31", False),
        ("2026-01-08T06:07:08Z", True),
    ):
        value.fill(day)
        expect(table.get_by_text("No such day")).to_have_count(0 if is_one else 1)
        expect(run).to_be_enabled() if is_one else expect(run).to_be_disabled()
    value.fill("2026-01-08")
    run.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expect(page.get_by_text("11 rows", exact=False).first).to_be_visible()


def test_jobs_that_end_elsewhere_appear_by_themselves(api: Api, page: Page) -> None:
    api.connect({"configName": "shop", "type": "SQLITE", "databaseName": "shop.db"})
    page.goto(console(api, "/jobs"))
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.get_by_text("No job")).to_be_visible()
    made = api.post_job({"shop": {"items": ["id"]}}).body["jobId"]
    row = page.get_by_role("listitem").filter(has_text="shop")
    expect(row).to_contain_text("completed")
    expect(row).to_contain_text("300 rows")
    expect(row.get_by_title(made, exact=True)).to_have_text(made[-8:])
    for asked in (made[-8:], f" {made.upper()} "):
        by_id = page.get_by_label("Job by its id")
        by_id.fill("no such id")
        by_id.press("Enter")
        expect(page.get_by_text("No job of those listed ends so")).to_be_visible()
        by_id.fill(asked)
        by_id.press("Enter")
        expect(page).to_have_url(re.compile(f"/jobs/{made}$"))
        page.go_back()
    row.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"/jobs/{made}$"))
    refusal = {"errorCode": "FET-1026", "title": "Result Too Large", "message": "33554432"}
    page.route("**/result/preview*", lambda route: route.fulfill(status=422, json=refusal))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("of at most 16 MiB. Download it")).to_be_visible()
    page.get_by_role("button", name="Run again").click()
    expect(page).not_to_have_url(re.compile(f"/jobs/{made}$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
