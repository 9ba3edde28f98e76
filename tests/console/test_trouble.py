"""What a person sees when something does not work, and what the page says to do about it."""

import json
import re
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect
from psycopg import sql

from tests.console.browser import keep_picture, open_page
from tests.console.places import a_service, console, give_token, make_shop, register
from tests.e2e.cluster import Api, embedded, postgres_connection
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess, free_port


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[FetcherProcess, Api]]:
    with a_service(tmp_path, DATASOURCE_LOCK_TIMEOUT_SEC="300") as served:
        yield served


@pytest.fixture
def api(service: tuple[FetcherProcess, Api]) -> Api:
    return service[1]


def test_a_source_that_is_down_says_where_it_failed_and_what_to_do(api: Api, page: Page) -> None:
    address = SqlAddress(host="127.0.0.1", port=free_port(), user="u", database="d")
    assert api.connect(postgres_connection(address)).status == 201
    page.goto(console(api))
    page.get_by_role("button", name="Test sales_db").click()
    row = page.get_by_role("row").filter(has_text="sales_db")
    expect(row).to_contain_text("failed at tcp")
    expect(row).to_contain_text("Nothing listens there. Check host and port")
    keep_picture(page, "trouble-down")


def test_a_wrong_password_is_told_and_mended_by_the_form(
    api: Api, page: Page, postgres_database: Callable[[], SqlAddress]
) -> None:
    address = postgres_database()
    role = f"{address.database}_reader"
    with psycopg.connect(address.conninfo, autocommit=True, connect_timeout=10) as admin:
        quoted = sql.Identifier(role)
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'right' NOINHERIT").format(quoted))
        try:
            mended(api, page, address, role)
        finally:
            admin.execute(sql.SQL("DROP ROLE {}").format(quoted))


def mended(api: Api, page: Page, address: SqlAddress, role: str) -> None:
    body = postgres_connection(address, userName="nobody-of-this-name", password="wrong-secret")
    assert api.connect(body).status == 201
    page.goto(console(api))
    page.get_by_role("button", name="Test sales_db").click()
    row = page.get_by_role("row").filter(has_text="sales_db")
    expect(row).to_contain_text("failed at auth")
    expect(row).to_contain_text("The server refused the user or the password")
    page.get_by_role("link", name="Edit sales_db").click()
    form = page.locator("form.form")
    expect(form.get_by_label("Password")).to_have_value("")
    form.get_by_label("User").fill(role)
    form.get_by_label("Password").fill("right")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("sales_db is saved")).to_be_visible()
    page.get_by_role("button", name="Test sales_db").click()
    expect(row).to_contain_text(re.compile(r"reached in \d+ ms"))
    assert "secret" not in page.content()


def test_a_server_that_goes_and_comes_back_is_told_and_found_again(
    browser: Browser, tmp_path: Path
) -> None:
    with a_service(tmp_path) as (process, api), open_page(browser, reaches_server=False) as page:
        register(api)
        page.goto(console(api, "/jobs"))
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        process.send(signal.SIGTERM)
        assert process.wait_exit(deadline_seconds=30) == 0
        expect(page.get_by_text("not live: reconnecting")).to_be_visible()
        expect(page.get_by_text("The service cannot be reached")).to_be_visible()
        with embedded(tmp_path, SERVER_ADDRESS=f"127.0.0.1:{api.port}"):
            expect(page.get_by_text("live", exact=True)).to_be_visible()
            expect(page.get_by_text("The service cannot be reached")).to_have_count(0)
            api.post_job({"shop": {"items": ["id"]}})
            row = page.get_by_role("listitem").filter(has_text="shop")
            expect(row).to_contain_text("completed")


def test_a_job_that_failed_says_why_and_what_to_do(api: Api, page: Page) -> None:
    register(api)
    made = api.post_job({"shop": {"customers": ["id"]}}).body["jobId"]
    api.wait_for_job(made)
    page.goto(console(api, f"/jobs/{made}"))
    failure = page.get_by_role("region", name="Why it failed")
    expect(failure).to_contain_text("missing tables customers")
    expect(failure).to_contain_text("Look at the schema, then correct the request.")
    page.get_by_role("button", name="Edit as new job").click()
    expect(page.get_by_label("The request").last).to_have_value(re.compile('"customers"'))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("there is no such table")).to_be_visible()


def test_the_rows_in_view_stay_when_a_job_comes_in_above(api: Api, page: Page) -> None:
    register(api)
    names = ("id", "name", "price", "made")
    first, *others = (each for size in (1, 2, 3) for each in combinations(names, size))
    for fields in others:
        assert api.post_job({"shop": {"items": list(fields)}}).status == 202
    page.set_viewport_size({"width": 1000, "height": 500})
    page.goto(console(api, "/jobs"))
    expect(page.get_by_text("13 jobs")).to_be_visible()
    page.get_by_role("list", name="Jobs").evaluate("box => { box.scrollTop = 310; }")
    seen = page.locator('[aria-posinset="6"] a').get_attribute("href")
    link = page.locator(f'a[href="{seen}"]')
    place = link.bounding_box()
    assert api.post_job({"shop": {"items": list(first)}}).status == 202
    expect(page.get_by_text("14 jobs")).to_be_visible()
    assert link.bounding_box() == place


def test_deleting_a_connection_that_a_job_reads_is_explained(
    api: Api, page: Page, postgres_database: Callable[[], SqlAddress]
) -> None:
    address = postgres_database()
    with psycopg.connect(address.conninfo, connect_timeout=10) as locker:
        locker.execute("CREATE TABLE orders (id bigint)")
        locker.commit()
        locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        assert api.connect(postgres_connection(address)).status == 201
        made = api.post_job({"sales_db": {"orders": ["id"]}}).body["jobId"]
        api.wait_for_status(made, "processing")
        explained(api, page)


def explained(api: Api, page: Page) -> None:
    page.goto(console(api))
    page.get_by_role("button", name="Delete sales_db").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Delete sales_db?")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("A job reads from this connection right now.")
    dialog.get_by_role("link", name="Show its jobs").click()
    page.get_by_role("listitem").get_by_role("link").click()
    page.get_by_role("button", name="Cancel job").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")
    expect(page.get_by_text("The job was cancelled. Run it again")).to_be_visible()
    expect(page.get_by_role("region", name="Why it failed")).to_have_count(0)
    expect(page.get_by_text("nothing was read")).to_be_visible()
    page.goto(console(api))
    page.get_by_role("button", name="Delete sales_db").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No connection yet")).to_be_visible()


def test_the_access_token_is_asked_for_and_kept_nowhere(browser: Browser, tmp_path: Path) -> None:
    secret = "console-access-token-0123456789abcdef"
    with (
        a_service(tmp_path, FETCHER_ACCESS_TOKEN=secret) as (_, api),
        open_page(browser) as page,
    ):
        page.goto(console(api))
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("This service asks who you are")
        expect(dialog.get_by_label("Access token")).to_be_focused()
        give_token(page, "a-wrong-one")
        expect(dialog).to_contain_text("The token was refused.")
        expect(dialog.get_by_label("Access token")).to_be_focused()
        give_token(page, secret)
        expect(page.get_by_text("No connection yet")).to_be_visible()
        expect(dialog).to_have_count(0)
        kept = page.evaluate(
            "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
        )
        assert secret not in kept
        assert secret not in page.content()
        page.goto(console(api, "/jobs"))
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.set_viewport_size({"width": 360, "height": 740})
        keep_picture(page, "token-360")
        labels = [label.bounding_box() for label in page.locator(".top-settings span").all()]
        assert [box is not None and box["height"] < 30 for box in labels] == [True, True]
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(console(api, "/operations"))
        page.reload()
        expect(dialog).to_contain_text("This service asks who you are")
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("alert")).to_have_count(1)
        expect(dialog).to_have_count(0)
        page.get_by_role("button", name="Enter a token").click()
        give_token(page, secret)
        expect(page.get_by_role("region", name="Queues")).to_be_visible()


def test_what_was_seen_with_a_token_goes_with_it(browser: Browser, tmp_path: Path) -> None:
    secret = "console-access-token-0123456789abcdef"
    with (
        a_service(tmp_path, FETCHER_ACCESS_TOKEN=secret) as (_, api),
        open_page(browser) as page,
    ):
        register(Api(api.port, secret), "only-for-me")
        page.goto(console(api))
        dialog = page.get_by_role("dialog")
        give_token(page, secret)
        expect(page.get_by_text("only-for-me")).to_be_visible()
        page.get_by_role("button", name="Forget token").click()
        expect(dialog).to_contain_text("This service asks who you are")
        expect(page.get_by_text("only-for-me")).to_have_count(0)


def test_limits_are_shown_before_they_are_hit(browser: Browser, tmp_path: Path) -> None:
    with embedded(tmp_path) as (_, api), open_page(browser) as page:
        make_shop(tmp_path, tables=25)
        register(api)
        page.goto(console(api, "/build"))
        tables = {f"t_{number:05}": ["*"] for number in range(19)}
        request = {"dataRequest": {"mappedFields": {"shop": tables}}, "metadata": {"source": "x"}}
        page.get_by_label("The request").last.fill(json.dumps(request))
        page.get_by_role("button", name="shop").click()
        expect(page.get_by_text("19 tables (at most 20)")).to_be_visible()
        page.get_by_role("checkbox", name="items").check()
        expect(
            page.get_by_text("20 tables (at most 20) · No more are allowed in one job")
        ).to_be_visible()
        expect(page.get_by_role("checkbox", name="orders")).to_be_disabled()


def test_a_table_of_more_fields_than_a_job_may_ask_for(browser: Browser, tmp_path: Path) -> None:
    with embedded(tmp_path) as (_, api), open_page(browser) as page:
        make_shop(tmp_path)
        with closing(sqlite3.connect(tmp_path / "fetcher-data/sources/shop.db")) as shop, shop:
            shop.execute(f"CREATE TABLE wide ({', '.join(f'c_{n:03} TEXT' for n in range(60))})")
        register(api)
        page.goto(console(api, "/build?source=shop&table=wide"))
        table = page.get_by_role("region", name="shop · wide")
        expect(table).to_contain_text("50 fields (at most 50) · No more are allowed in one job")
        expect(table.get_by_label("All fields")).to_be_disabled()
        expect(table.get_by_label("c_055")).to_be_disabled()
        table.get_by_label("c_000").uncheck()
        fields = table.get_by_role("checkbox")
        expect(fields).to_have_count(61)
        table.get_by_label("Search fields").fill("C_ 55")
        expect(table).to_contain_text("1 of 60 fields")
        expect(fields).to_have_count(2)
        table.get_by_label("c_055").check()
        table.get_by_label("Search fields").fill("")
        expect(table).to_contain_text("60 fields")
        expect(fields).to_have_count(61)
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("Sources, tables and fields are there.")).to_be_visible()
