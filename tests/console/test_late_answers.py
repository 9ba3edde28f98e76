"""Answers that come when the reader is elsewhere, has typed on, or has become somebody else."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.places import a_service, console, give_token, register
from tests.e2e.cluster import Api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with a_service(tmp_path_factory.mktemp("service"), MAX_PAGINATION_LIMIT="2") as (_, served):
        register(served)
        yield served


@contextmanager
def held(page: Page, pattern: str | re.Pattern[str], method: str = "POST") -> Iterator[list[Route]]:
    """Requests that are let through at the end, as by a service that is slow."""
    waiting: list[Route] = []
    is_slow = True

    def hold(route: Route) -> None:
        if is_slow and route.request.method == method:
            waiting.append(route)
        else:
            route.fallback()

    page.route(pattern, hold)
    yield waiting
    is_slow = False
    for route in waiting:
        route.continue_()


def until_held(page: Page, waiting: list[Route], *, most: int = 1) -> None:
    for _ in range(600):
        if len(waiting) == most:
            return
        page.wait_for_timeout(100)
    raise AssertionError("no request has come")


def choose_items(page: Page, api: Api) -> None:
    page.goto(console(api, "/build?source=shop&table=items"))
    chosen = page.get_by_role("region", name="shop · items")
    expect(chosen.get_by_label("All fields")).to_be_checked()


def test_who_has_gone_elsewhere_is_left_there(api: Api, page: Page) -> None:
    choose_items(page, api)
    page.get_by_label("Product").last.fill("acme-reports")
    with held(page, "**/v1/fetcher") as waiting:
        page.get_by_role("button", name="Run").click()
        until_held(page, waiting)
        page.get_by_role("link", name="Connections").click()
        page.get_by_role("link", name="New connection").click()
        page.get_by_label("Host").fill("db.example.com")
    expect(page.get_by_text("The job was taken")).to_be_visible()
    expect(page.get_by_label("Host")).to_have_value("db.example.com")


def test_what_a_check_found_is_told_of_the_request_that_was_checked(api: Api, page: Page) -> None:
    choose_items(page, api)
    for edited in ("one", "another"):
        with held(page, "**/validate") as waiting:
            page.get_by_role("button", name="Check").click()
            until_held(page, waiting)
            page.get_by_label("Product").last.fill(edited)
            taken = waiting.pop()
        with page.expect_response("**/validate"):
            taken.continue_()
        page.wait_for_timeout(200)
        expect(page.get_by_text("Sources, tables and fields are there.")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_two_clicks_register_one_connection(api: Api, page: Page) -> None:
    page.goto(console(api, "/connections/new"))
    page.get_by_label("Type").select_option("SQLITE")
    page.locator("form.form").get_by_label("Product").fill("acme-reports")
    page.locator("form.form").get_by_label("Name").fill("twice")
    page.get_by_label("File").fill("shop.db")
    with held(page, "**/v1/management/connections") as waiting:
        page.get_by_role("button", name="Register").dblclick()
        until_held(page, waiting)
        page.get_by_label("File").press("Enter")
        page.wait_for_timeout(200)
        assert len(waiting) == 1
    expect(page.get_by_text("twice is registered")).to_be_visible()


def token_of(person: str, serial: int) -> str:
    body = json.dumps({"sub": person, "jti": serial}).encode()
    return f"e30.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.x"


def test_what_was_typed_outlives_a_token_that_ran_out(api: Api, page: Page) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=401, body="Unauthorized")

    found = register(api, "typed-over")
    own = f"**/{found['id']}"
    page.route(own, refuse, times=1)
    page.goto(console(api, f"/connections/{found['id']}/edit"))
    give_token(page, token_of("one", 1))
    name = page.locator("form.form").get_by_label("Name")
    name.fill("renamed")
    page.route(own, refuse, times=1)
    page.get_by_role("button", name="Save").click()
    with page.expect_response(own):
        give_token(page, token_of("one", 2))
    expect(name).to_have_value("renamed")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("renamed is saved")).to_be_visible()


def test_jobs_that_came_while_nobody_looked_are_all_there(api: Api, page: Page) -> None:
    numbers = count()

    def post() -> str:
        return str(api.post_job({"shop": {"orders": ["id"]}}, n=next(numbers)).body["jobId"])

    first = [post() for _ in range(3)]
    page.goto(console(api, "/jobs"))
    expect(page.locator(f"a[href='#/jobs/{first[0]}']")).to_be_visible()
    with held(page, re.compile(r"/v1/fetcher\?"), "GET") as waiting:
        later = [post() for _ in range(9)]
        page.wait_for_timeout(4000)
        # of two answers the older might come last, and take away what the other has brought
        newest = [each for each in waiting if "cursor" not in each.request.url]
        assert len(newest) < 2
    for job_id in later:
        expect(page.locator(f"a[href='#/jobs/{job_id}']")).to_be_visible()


def test_what_the_service_found_out_after_a_test_counts(api: Api, page: Page) -> None:
    breakers: dict[str, object] = {"adapters": [], "connections": [], "openConnections": 0}
    breakers["process"] = {}

    def told(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=json.dumps(breakers))

    page.route("**/v1/operations/breakers", told)
    page.goto(console(api))
    page.get_by_role("button", name="Test shop", exact=True).click()
    row = page.get_by_role("row").filter(has=page.get_by_text("shop", exact=True))
    expect(row).to_contain_text("reached in")
    edit = row.get_by_role("link", name="Edit shop").get_attribute("href") or ""
    down = {"stage": "tcp", "reason": "refused", "failures": 3, "openings": 1}
    of_shop = {"connectionId": edit.split("/")[2], "configName": "shop"}
    breakers["connections"] = [{**of_shop, **down, "changedAt": "2026-01-01T00:00:00Z"}]
    expect(row).to_contain_text("down")
    expect(row).not_to_contain_text("reached in")


def test_a_deletion_that_ends_late_closes_no_other_dialog(api: Api, page: Page) -> None:
    for name in ("first-to-go", "kept-by-fault", "still-asked"):
        register(api, name)
    page.goto(console(api))
    dialog = page.get_by_role("dialog")

    def ask_for(name: str) -> None:
        page.get_by_role("button", name=f"Delete {name}").click()
        expect(dialog).to_contain_text(name)

    with held(page, "**/v1/management/connections/*", "DELETE") as waiting:
        for number, name in enumerate(("first-to-go", "kept-by-fault"), 1):
            ask_for(name)
            dialog.get_by_role("button", name="Delete").click()
            until_held(page, waiting, most=number)
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
        ask_for("still-asked")
        waiting.pop().fulfill(status=500, body="broken")
    expect(page.get_by_text("first-to-go is deleted")).to_be_visible()
    expect(page.get_by_text("kept-by-fault is not deleted: broken")).to_be_visible()
    expect(dialog).to_contain_text("still-asked")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("still-asked is deleted")).to_be_visible()
    expect(page.get_by_role("button", name="Delete still-asked")).to_have_count(0)
    # the row that had it is gone
    expect(page.get_by_role("main")).to_be_focused()


def test_what_is_typed_is_read_before_a_table_that_comes_late(api: Api, page: Page) -> None:
    """Whatever is shown is what runs: neither of the two takes the place of the other."""
    page.goto(console(api, "/build"))
    written = page.get_by_label("The request").last
    with held(page, "**/schema?**", "GET") as waiting:
        page.goto(console(api, "/build?source=shop&table=items"))
        until_held(page, waiting)
        stop_pauses(page)
        written.fill(large_request("typed"))
        expect(page.get_by_role("button", name="Run")).to_be_disabled()
    expect(page.get_by_role("region", name="shop · items")).to_be_visible()
    expect(page.get_by_role("region", name="shop · orders")).to_be_visible()
    expect(written).to_have_value(re.compile('"items"'))
    expect(written).to_have_value(re.compile('"note": "typed'))
    expect(page.get_by_role("button", name="Run")).to_be_enabled()


def test_what_one_has_typed_is_not_read_for_the_next(api: Api, page: Page) -> None:
    listed = "**/v1/management/connections?**"
    page.route(listed, lambda route: route.fulfill(status=401, body="no"), times=1)
    page.goto(console(api, "/build"))
    give_token(page, token_of("one", 1))
    expect(page.get_by_role("button", name="shop SQLITE")).to_be_visible()
    page.route(listed, lambda route: route.fulfill(status=401, body="no"), times=1)
    page.get_by_role("link", name="Connections").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("location.hash = '#/build'")
    expect(page.get_by_text("SQLITE").first).to_be_visible()
    with held(page, listed, "GET") as waiting, held(page, "**/openapi.json", "GET"):
        give_token(page, token_of("another", 1))
        until_held(page, waiting)
        stop_pauses(page)
        written = page.get_by_label("The request").last
        written.fill(large_request("of one"))
        expect(page.get_by_role("button", name="Run")).to_be_disabled()
    expect(page.get_by_role("button", name="shop SQLITE")).to_be_visible()
    expect(written).to_have_value(re.compile(r'"mappedFields": {}'))


def stop_pauses(page: Page) -> None:
    """As if the writer never paused."""
    page.evaluate(
        "() => { const wait = setTimeout;"
        " window.setTimeout = (call, ms, ...rest) => wait(call, ms === 400 ? 1e8 : ms, ...rest); }"
    )


def large_request(note: str) -> str:
    metadata = {"source": "acme-reports", "note": note.ljust(120_000, "-")}
    data = {"mappedFields": {"shop": {"orders": ["id"]}}}
    return json.dumps({"dataRequest": data, "metadata": metadata})


def test_a_test_of_what_was_changed_since_says_nothing(api: Api, page: Page) -> None:
    found = register(api, "changed-since")
    page.goto(console(api))
    with held(page, "**/test") as waiting:
        page.get_by_role("button", name="Test changed-since").click()
        until_held(page, waiting)
        page.get_by_role("link", name="Edit changed-since").click()
        page.get_by_label("File").fill("not-there.db")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("changed-since is saved")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_text("changed-since", exact=True))
    page.wait_for_timeout(1000)
    expect(row).to_contain_text("not tested")
    assert api.call("DELETE", f"/v1/management/connections/{found['id']}").status == 204


def test_copying_leaves_the_focus_where_it_was(api: Api, page: Page) -> None:
    """Where the page is not secure, as on plain HTTP, a text is copied by its selection."""
    choose_items(page, api)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy as curl").press("Enter")
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
