"""What an operator sees at a glance, and how dead letters are sent again."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.places import a_service, console, register
from tests.e2e.cluster import Api
from tests.e2e.test_operations import a_dead_letter


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with a_service(tmp_path) as (_, served):
        yield served


def test_parts_jobs_and_dead_letters(api: Api, page: Page, tmp_path: Path) -> None:
    register(api)
    completed = api.post_job({"shop": {"items": ["id"]}}).body["jobId"]
    failed = api.post_job({"shop": {"customers": ["id"]}}).body["jobId"]
    for job in (completed, failed):
        api.wait_for_job(job)
    a_dead_letter(tmp_path, completed)

    page.goto(console(api, "/operations"))
    dependencies = page.get_by_role("region", name="Dependencies")
    for name in ("record_store", "queue", "object_store"):
        expect(dependencies.get_by_text(name, exact=True)).to_be_visible()
    expect(dependencies.get_by_text("up", exact=True)).to_have_count(3)
    expect(dependencies.get_by_role("img", name="record_store: 0 of")).to_be_visible()

    counts = page.get_by_role("region", name="Jobs", exact=True)
    expect(counts.get_by_role("link", name="1 completed")).to_be_visible()
    expect(counts.get_by_role("link", name="1 failed")).to_be_visible()
    expect(counts).to_contain_text("missing tables customers")
    activity = page.get_by_role("region", name="Jobs ended in the last hour").first
    expect(activity.locator("rect.good")).to_have_count(1)
    expect(activity.locator("rect.bad")).to_have_count(1)

    queues = page.get_by_role("region", name="Queues").first
    expect(queues).to_contain_text("not told by the embedded queue")

    actors = page.get_by_role("region", name="Actors").first
    expect(actors.get_by_role("row").filter(has_text="http")).to_contain_text("running")
    audit = page.get_by_role("region", name="Audit trail").first
    expect(audit).to_contain_text("connection.created")

    letters = page.get_by_role("region", name="Dead letters").first
    expect(letters).to_contain_text("1 of 1 letter")
    expect(letters).to_contain_text("bad_signature")
    letters.get_by_role("button", name="Redrive all that may go").click()
    expect(letters).to_contain_text("0 of 1 letter dispatched again")
    expect(letters).to_contain_text(re.compile("its job has ended|not genuine"))

    # who looks for a reason by the keyboard goes on to the button that sends those again
    reason = letters.get_by_label("Only with the reason")
    reason.fill("no_such_reason")
    reason.press("Enter")
    expect(letters).to_contain_text("No dead letter")
    expect(reason).to_be_focused()
    reason.fill("bad_signature")
    reason.press("Tab")
    redrive = letters.get_by_role("button", name="Redrive", exact=True)
    expect(redrive).to_be_focused()
    expect(letters).to_contain_text("1 of 1 letter")
