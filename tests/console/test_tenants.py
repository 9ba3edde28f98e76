"""One console for all tenants: whose token it has decides what it shows."""

import re

from playwright.sync_api import Page, expect

from tests.console.places import console, give_token
from tests.e2e.cluster import postgres_connection
from tests.e2e.tenancy import Tenancy, token_of
from tests.servers.addresses import SqlAddress


def test_the_page_shows_what_is_the_tokens_tenants_and_nothing_else(
    tenancy: Tenancy, shop: SqlAddress, page: Page
) -> None:
    acme, beta = tenancy.add("acme"), tenancy.add("beta")
    with tenancy.process("manager") as (_, api):
        jobs = {}
        for place, name in ((acme, "acme_db"), (beta, "beta_db")):
            own = api.of(place.tenant_id)
            assert own.connect(postgres_connection(shop, configName=name)).status == 201
            jobs[name] = own.post_job({name: {"orders": ["id"]}}).body["jobId"]
        page.goto(console(api.nobody))
        give_token(page, token_of(acme.tenant_id))
        only_shown(page, "acme_db", "beta_db")
        page.goto(console(api.nobody, "/build?source=acme_db&table=orders"))
        chosen = page.get_by_role("region", name="acme_db · orders")
        expect(chosen.get_by_label("All fields")).to_be_checked()
        page.get_by_label("Product").first.fill("acme-reports")

        # as when a token has run out: the next one need not be of the same tenant
        page.route("**/validate", lambda route: route.fulfill(status=401, body="Unauthorized"))
        page.get_by_role("button", name="Check").click()
        give_token(page, token_of(beta.tenant_id))
        expect(page.get_by_text("Nothing chosen yet")).to_be_visible()
        expect(page.get_by_label("The request").last).not_to_have_value(re.compile("acme"))
        expect(page.get_by_label("Product").first).to_have_value("")
        only_shown(page, "beta_db", "acme_db")
        page.get_by_role("link", name="Jobs").click()
        expect(page.get_by_text("1 job", exact=True)).to_be_visible()
        only_shown(page, "beta_db", "acme_db")
        page.goto(console(api.nobody, f"/jobs/{jobs['acme_db']}"))
        expect(page.get_by_text("There is no such job")).to_be_visible()
        page.get_by_role("button", name="Forget token").click()
        give_token(page, token_of(acme.tenant_id))
        only_shown(page, "acme_db", "beta_db")


def only_shown(page: Page, own: str, foreign: str) -> None:
    expect(page.get_by_text(own).first).to_be_visible()
    assert foreign not in page.content()
