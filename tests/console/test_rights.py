"""Who may look but not change is told so by the real service, in words, and loses nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.places import a_service, console, give_token, register
from tests.e2e.cluster import Api
from tests.servers.auth_double import AUTHORIZED, auth_double, only
from tests.unit.adapters.auth.keys import an_ed_key

READER = an_ed_key().token({"type": "normal-user", "owner": "acme", "sub": "reader"})
REFUSED = "You may not do this here. Ask whoever gives rights in this service."


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with auth_double(tmp_path) as authorization:
        authorization.answers(AUTHORIZED)
        settings = {"PLUGIN_AUTH_ENABLED": "true", "PLUGIN_AUTH_ADDRESS": authorization.address}
        with a_service(tmp_path, RESULT_PREVIEW_ENABLED="false", **settings) as (_, served):
            own = Api(served.port, READER)
            register(own)
            own.wait_for_job(own.post_job({"shop": {"items": ["id"]}}).body["jobId"])
            authorization.answers(only("connections/get", "fetcher/get", "fetcher/preview"))
            yield own


def test_a_reader_sees_everything_and_is_told_what_is_refused(api: Api, page: Page) -> None:
    page.goto(console(api))
    give_token(page, READER)
    row = page.get_by_role("row").filter(has_text="shop")
    row.get_by_role("button", name="Test shop").click()
    expect(row).to_contain_text(REFUSED)

    row.get_by_role("link", name="Edit shop").click()
    form = page.locator("form.form")
    form.get_by_label("File").fill("other.db")
    form.get_by_role("button", name="Save").click()
    told(page)
    expect(form.get_by_label("File")).to_have_value("other.db")

    follow(page, "Connections")
    row.get_by_role("button", name="Delete shop").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    told(page.get_by_role("dialog"))
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()

    page.goto(console(api, "/build?source=shop&table=items"))
    page.get_by_role("button", name="Run").click()
    told(page)
    expect(page.get_by_role("region", name="shop · items")).to_be_visible()

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    follow(page, "Operations")
    told(page)
    assert [url.rpartition("/")[2] for url in asked if "/operations/" in url] == ["dependencies"]
    expect(page.get_by_role("alert")).to_contain_text("It takes the right to read operations.")

    follow(page, "Jobs")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.get_by_role("listitem").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    expect(page.get_by_text("This service shows no rows (RESULT_PREVIEW_ENABLED)")).to_be_visible()
    expect(page.get_by_role("button", name="Preview")).to_have_count(0)
    page.get_by_role("button", name="Run again").click()
    told(page)


def told(place: Page | Locator) -> None:
    alert = place.get_by_role("alert")
    expect(alert).to_have_count(1)
    expect(alert).to_contain_text(REFUSED)
    expect(alert).to_contain_text("FET-0007")


def follow(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name).click()
