"""Names, numbers and settings that a page easily gets wrong."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fetcher.domain.connections import SourceType
from fetcher.domain.tls_modes import TLS_MODES, VERIFYING_TLS_MODES
from tests.console.browser import open_page
from tests.console.places import PRODUCT, a_service, console, register
from tests.e2e.cluster import Api, postgres_connection
from tests.servers.addresses import SqlAddress

BEYOND_DOUBLES = 9007199254740993
NAMES = ("constructor", "__proto__", "<img src=x onerror=alert(1)>", 'it\'s "a.b"/?#%20', "שלום")
SMALL_PAGE = 2
BEFORE_A_LOOK_MS = 20_000
"""Every 30 s the page looks at older jobs by itself."""


def quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def make_hostile(sources: Path) -> None:
    with closing(sqlite3.connect(sources / "hostile.db")) as database, database:
        for name in NAMES:
            columns = ", ".join(f"{quoted(each)} TEXT" for each in NAMES)
            database.execute(f"CREATE TABLE {quoted(name)} (id INTEGER PRIMARY KEY, {columns})")
            values = (BEYOND_DOUBLES, *("<script>alert(1)</script>" for _ in NAMES))
            places = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO {quoted(name)} VALUES ({places})", values)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("service")
    settings = {"MAX_PAGINATION_LIMIT": str(SMALL_PAGE), "DATASOURCE_LOCK_TIMEOUT_SEC": "300"}
    with a_service(folder, **settings) as (_, served):
        make_hostile(folder / "fetcher-data" / "sources")
        for name in ("constructor", "__proto__", "toString", "ownerless"):
            register(served, name, databaseName="hostile.db")
        with closing(sqlite3.connect(folder / "fetcher-data" / "fetcher.db")) as records, records:
            # as it was before there were products
            records.execute(
                "UPDATE connection SET product_name = '', product = ''"
                " WHERE config_name = 'ownerless'"
            )
        yield served


def request_of(page: Page) -> Locator:
    return page.get_by_label("The request").last


def test_hostile_names_are_names_from_the_builder_to_the_preview(api: Api, page: Page) -> None:
    for source in ("constructor", "__proto__"):
        page.goto(console(api, "/build"))
        page.get_by_role("button", name="Start anew").click()
        page.get_by_role("button", name=source).click()
        for table in NAMES:
            page.locator("label.row-check").filter(has_text=table).get_by_role("checkbox").check()
        for table in NAMES:
            card = page.get_by_role("region", name=f"{source} · {table}", exact=True)
            expect(card.get_by_label("All fields")).to_be_checked()
        filtered = page.get_by_role("region", name=f"{source} · constructor", exact=True)
        filtered.get_by_label("Field", exact=True).select_option("__proto__")
        filtered.get_by_role("button", name="Add filter").click()
        filtered.get_by_label("Value: __proto__").fill("<script>alert(1)</script>")
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
        page.get_by_role("button", name="Preview").click()
        for table in NAMES:
            rows = page.get_by_role("region", name=f"{source} · {table}", exact=True)
            expect(rows.get_by_role("cell", name=str(BEYOND_DOUBLES), exact=True)).to_be_visible()
            expect(rows.get_by_role("cell", name="<script>alert(1)</script>")).to_have_count(5)


def test_a_number_beyond_doubles_is_asked_for_and_told_as_it_is(api: Api, page: Page) -> None:
    page.goto(console(api, "/build?source=constructor&table=constructor"))
    table = page.get_by_role("region", name="constructor · constructor")
    table.get_by_label("Field", exact=True).select_option("id")
    table.get_by_role("button", name="Add filter").click()
    table.get_by_label("Value: id").fill(str(BEYOND_DOUBLES))
    number = re.compile(rf'"eq": \[\s*{BEYOND_DOUBLES}\s*\]')
    expect(request_of(page)).to_have_value(number)
    edited = request_of(page).input_value().replace('"eq"', '"gte"')
    request_of(page).fill(edited)
    expect(table.get_by_label("Value: id")).to_have_value(str(BEYOND_DOUBLES))
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("completed")
    expect(page.locator("pre").last).to_contain_text(
        re.compile(rf'"gte": \[\s*{BEYOND_DOUBLES}\s*\]')
    )
    stored = api.job(page.url.rpartition("/")[2])
    assert stored["filters"]["constructor"]["constructor"]["id"] == {"gte": [BEYOND_DOUBLES]}
    page.get_by_role("button", name="Edit as new job").click()
    expect(request_of(page)).to_have_value(re.compile(str(BEYOND_DOUBLES)))


def test_an_operator_is_changed_in_its_place(api: Api, page: Page) -> None:
    page.goto(console(api, "/build?source=toString&table=constructor"))
    table = page.get_by_role("region", name="toString · constructor")
    for _ in range(2):
        table.get_by_label("Field", exact=True).select_option("id")
        table.get_by_role("button", name="Add filter").click()
    operators = table.get_by_label("Operator: id")
    expect(operators).to_have_count(2)
    expect(operators.nth(0).locator("option[value=ne]")).to_be_disabled()
    expect(operators.nth(1)).to_be_focused()
    operators.nth(0).focus()
    operators.nth(0).select_option("gt")
    expect(operators.nth(0)).to_be_focused()
    expect(operators.nth(0)).to_have_value("gt")
    expect(operators.nth(1)).to_have_value("ne")


def test_of_values_one_a_line_an_empty_line_is_none(api: Api, page: Page) -> None:
    page.goto(console(api, "/build?source=toString&table=constructor"))
    table = page.get_by_role("region", name="toString · constructor")
    table.get_by_label("Field", exact=True).select_option("id")
    table.get_by_role("button", name="Add filter").click()
    table.get_by_label("Operator: id").select_option("in")
    values = table.get_by_label("Values, one a line: id")
    values.press_sequentially("1\n22\n")
    expect(values).to_have_value("1\n22\n")
    expect(request_of(page)).to_have_value(re.compile(r'"in": \[\s*1,\s*22\s*\]'))
    values.press_sequentially("x")
    expect(table).to_contain_text("A number, such as 12.5")
    # what is no request goes with "Start anew", also where nothing had been chosen
    page.get_by_role("button", name="Start anew").click()
    request_of(page).fill("no JSON")
    expect(page.get_by_text("This is no request yet")).to_be_visible()
    page.get_by_role("button", name="Start anew").click()
    expect(page.get_by_text("This is no request yet")).to_have_count(0)
    expect(request_of(page)).to_have_value(re.compile("mappedFields"))


def test_a_request_that_cannot_be_what_it_seems_is_none(api: Api, page: Page) -> None:
    page.goto(console(api, "/build"))
    of = '{"dataRequest": {"mappedFields": {"toString": {%s}}}, "metadata": {"source": %s}}'
    asked = '"constructor": ["id"], "a:{[": ["id"]'
    deep = "[" * 63 + "]" * 63
    for text, fault in (
        (of % (f'{asked}, "constructor": ["*"]', '"a"'), "two members of one name"),
        (of % (asked, deep), "nested deeper than 64 levels"),
    ):
        request_of(page).fill(text)
        expect(page.get_by_text(fault)).to_be_visible()
        expect(page.get_by_role("button", name="Run")).to_be_disabled()
        request_of(page).fill(of % (asked, deep[1:-1]))
        expect(page.get_by_role("button", name="Run")).to_be_enabled()


def test_a_large_request_is_read_when_its_writer_pauses(api: Api, page: Page) -> None:
    """Its thousands of values are lines of the list that the filter's field shows."""
    page.goto(console(api, "/build?source=__proto__&table=constructor"))
    values = [f"value-{number:06}".ljust(70, "-") for number in range(9_000)]
    data = {
        "mappedFields": {"__proto__": {"constructor": ["id"]}},
        "filters": {"__proto__": {"constructor": {"id": {"in": values}}}},
    }
    request = {"dataRequest": data, "metadata": {"source": PRODUCT}}
    text = json.dumps(request)
    assert len(text) > 600_000
    written, run = request_of(page), page.get_by_role("button", name="Run")
    expect(run).to_be_enabled()
    written.fill(text[:-1])
    expect(run).to_be_disabled()
    expect(page.get_by_text("This is no request yet")).to_be_visible()
    written.press("End")
    written.press("Control+End")
    written.press("}")
    expect(run).to_be_enabled()
    # what is left before its writer has paused is read all the same
    written.press("Control+Home")
    written.press("x")
    written.blur()
    expect(page.get_by_text("This is no request yet")).to_be_visible()
    written.press("Control+Home")
    written.press("Delete")
    page.get_by_role("link", name="Jobs").press("Enter")
    page.go_back()
    expect(request_of(page)).to_have_value(re.compile("value-008999"))
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    assert api.job(posted_by_curl(page)["jobId"])["filters"] == data["filters"]


@pytest.mark.parametrize("name", NAMES)
def test_the_request_as_a_command_is_the_same_request(api: Api, page: Page, name: str) -> None:
    page.goto(console(api, "/build"))
    mapped = {"constructor": {name: list(NAMES)}}
    request = {"dataRequest": {"mappedFields": mapped}, "metadata": {"source": PRODUCT}}
    request_of(page).fill(json.dumps(request))
    expect(page.get_by_role("button", name="Run")).to_be_enabled()
    job = api.job(posted_by_curl(page)["jobId"])
    assert job["mappedFields"] == mapped


def posted_by_curl(page: Page) -> Any:
    """The answer to what a person copies and runs in a shell."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    command = page.evaluate("navigator.clipboard.readText()")
    ended = subprocess.run(
        ["sh"], input=command, capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(ended.stdout)


def test_lists_of_small_pages_are_whole_and_keep_what_is_typed(api: Api, page: Page) -> None:
    page.goto(console(api))
    expect(page.get_by_text("4 connections")).to_be_visible()
    made = [api.post_job({"toString": {name: ["id"]}}).body["jobId"] for name in NAMES]
    for job in made:
        api.wait_for_job(job)
    page.goto(console(api, "/jobs?connection=toString"))
    jobs = page.get_by_role("list", name="Jobs").get_by_role("listitem")
    expect(jobs).to_have_count(5)
    source = page.get_by_label("Product", exact=True).last
    source.press_sequentially("acme-")
    asked = re.compile(r"/v1/fetcher\?.*connection=toString")
    for _ in range(2):
        with page.expect_response(asked):
            pass
    expect(source).to_have_value("acme-")
    source.press_sequentially("reports")
    source.press("Enter")
    expect(page).to_have_url(re.compile("source=acme-reports"))
    expect(jobs).to_have_count(5)


def test_older_jobs_that_end_are_shown_as_ended(
    api: Api, browser: Browser, postgres_database: Callable[[], SqlAddress]
) -> None:
    address = postgres_database()
    assert api.connect(postgres_connection(address)).status == 201
    with psycopg.connect(address.conninfo, connect_timeout=10) as locker:
        locker.execute("CREATE TABLE orders (id bigint, total bigint)")
        locker.commit()
        locker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        unheard, heard = (
            api.post_job({"sales_db": {"orders": [field]}}).body["jobId"]
            for field in ("id", "total")
        )
        for name in NAMES:
            assert api.post_job({"constructor": {name: ["id"]}}).status == 202
        with open_page(browser, reaches_server=False) as page:
            page.route("**/v1/fetcher/events", lambda route: route.abort())
            page.goto(console(api, "/jobs"))
            expect(row_of(page, unheard)).to_contain_text(re.compile("waiting|running"))
            expect(row_of(page, heard)).to_contain_text(re.compile("waiting|running"))
            expect(page.get_by_text("not live: reconnecting")).to_be_visible()
            cancelled(api, unheard)
            page.unroute("**/v1/fetcher/events")
            expect(row_of(page, unheard)).to_contain_text("cancelled", timeout=BEFORE_A_LOOK_MS)
            cancelled(api, heard)
            expect(row_of(page, heard)).to_contain_text("cancelled", timeout=BEFORE_A_LOOK_MS)


def row_of(page: Page, job_id: str) -> Locator:
    return page.locator(f'a[href="#/jobs/{job_id}"]')


def cancelled(api: Api, job_id: str) -> None:
    assert api.call("POST", f"/v1/fetcher/{job_id}/cancel").status in (200, 202)
    assert api.wait_for_job(job_id)["status"] == "cancelled"


def test_a_connection_without_a_product_is_given_one_once(api: Api, page: Page) -> None:
    page.goto(console(api))
    row = page.get_by_role("row").filter(has_text="ownerless")
    row.get_by_role("button", name="Assign a product to ownerless").click()
    dialog = page.get_by_role("dialog")
    give = dialog.get_by_role("button", name="Assign", exact=True)
    expect(give).to_be_disabled()
    dialog.get_by_label("Product").fill("Größe")
    expect(dialog).to_contain_text("1 to 100 letters, digits, - and _")
    expect(give).to_be_disabled()
    dialog.get_by_label("Product").fill("Acme-Reports")
    give.click()
    expect(page.get_by_text("ownerless belongs to acme-reports")).to_be_visible()
    expect(row).to_contain_text("acme-reports")
    expect(page.get_by_role("button", name="Assign a product to")).to_have_count(0)
    stored = {each["configName"]: each for each in listed(api)}
    assert stored["ownerless"]["productName"] == "acme-reports"
    # no browser sends such a header
    product = page.get_by_label("Product", exact=True)
    product.fill("Größe ☃")
    product.press("Enter")
    expect(page.get_by_role("banner")).to_contain_text("1 to 100 letters, digits, - and _")
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def listed(api: Api) -> list[Any]:
    found: list[Any] = []
    while True:
        number = len(found) // SMALL_PAGE + 1
        page = api.call("GET", f"/v1/management/connections?limit={SMALL_PAGE}&page={number}").body
        found += page["items"]
        if len(found) >= page["total"] or not page["items"]:
            return found


def pem(kind: str) -> str:
    return f"-----BEGIN {kind}-----\nMAo=\n-----END {kind}-----"


def test_every_type_and_tls_mode_can_be_registered(api: Api, page: Page) -> None:
    for source_type in SourceType:
        for mode in ("", *TLS_MODES[source_type]):
            # the two that say most of each type: the first, and one that verifies
            if mode in TLS_MODES[source_type][1:] and mode not in VERIFYING_TLS_MODES:
                continue
            name = f"{source_type.lower()}-{mode or 'none'}"
            made = registered(api, page, source_type, name, mode)
            assert (made["type"], made.get("ssl", {}).get("mode", "")) == (source_type, mode)
    everything = len(listed(api))
    page.goto(console(api, "/build"))
    page.get_by_role("button", name=f"Show {everything - 12} more").click()
    expect(page.locator("ul.sources > li")).to_have_count(everything)


def registered(api: Api, page: Page, source_type: SourceType, name: str, mode: str) -> Any:
    page.goto(console(api, "/connections/new"))
    form = page.locator("form.form")
    form.get_by_label("Type").select_option(source_type)
    form.get_by_label("Product").fill(PRODUCT)
    form.get_by_role("textbox", name="Name", exact=True).fill(name)
    if source_type is SourceType.SQLITE:
        form.get_by_label("File").fill("hostile.db")
    else:
        form.get_by_label("Host").fill("db.example.com")
        form.get_by_label("Database").fill("sales")
        form.get_by_label("User").fill("reader")
        form.get_by_label("Password").fill("a-password")
        offered = form.get_by_label("Mode").locator("option")
        expect(offered).to_have_text(["not set", *TLS_MODES[source_type]])
        form.get_by_label("Mode").select_option(mode)
    if source_type is SourceType.ORACLE:
        form.get_by_label("Service name").last.fill("ORCL")
    if mode in VERIFYING_TLS_MODES:
        form.get_by_label("CA certificate").fill(pem("CERTIFICATE"))
    with page.expect_response(re.compile("/v1/management/connections$")) as answer:
        form.get_by_role("button", name="Register").click()
    assert (name, answer.value.status) == (name, 201)
    return answer.value.json()


def test_an_edit_sends_what_was_changed_alone(api: Api, page: Page) -> None:
    metadata = {"serviceName": "ORCL", "note": "kept"}
    old = register(
        api, "edited", type="ORACLE", databaseName="sales", host="db.example.com", port=1521,
        userName="reader", password="a-password", schema="HR", metadata=metadata,
        ssl={"mode": "true"},
    )  # fmt: skip
    sent = [
        edited(page, api, old["id"], {"Schema": ""}),
        edited(page, api, old["id"], {"Host": "other.example.com"}),
        edited(page, api, old["id"], {"Further settings": '{"note": 12345678901234567890}'}),
    ]
    assert sent[0] == {"schema": ""}
    assert sent[1] == {"host": "other.example.com"}
    assert sent[2] == {"metadata": {"note": 12345678901234567890, "serviceName": "ORCL"}}
    page.goto(console(api, f"/connections/{old['id']}/edit"))
    page.get_by_label("Connect by").select_option("sid")
    assert saved(page) == {"metadata": {"note": 12345678901234567890, "sid": "ORCL"}}
    page.goto(console(api, f"/connections/{old['id']}/edit"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("edited stays as it was: nothing was changed")).to_be_visible()


def edited(page: Page, api: Api, connection_id: str, values: dict[str, str]) -> Any:
    page.goto(console(api, f"/connections/{connection_id}/edit"))
    for label, value in values.items():
        page.locator("form.form").get_by_label(label).fill(value)
    return saved(page)


def saved(page: Page) -> Any:
    """The body that the form has sent, and that the service has taken."""
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answer:
        page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("is saved").last).to_be_visible()
    assert answer.value.status == 200
    return json.loads(answer.value.request.post_data or "")
