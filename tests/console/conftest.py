"""One browser a module, and a page a test."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browser import CHROMIUM, keep_picture, open_browser, open_page
from tests.e2e.fixtures import shop, tenancy

__all__ = ["browser", "page", "shop", "tenancy"]

HERE = "tests/console/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is not None:
        return
    skip = pytest.mark.skip(
        reason="chromium is not here: scripts/services.py up installs it as root on Debian"
    )
    for item in items:
        if item.nodeid.startswith(HERE):
            item.add_marker(skip)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with open_page(browser) as opened:
        yield opened
        keep_picture(opened, request.node.name)
