"""Debian's Chromium without a screen, and pages that tell of every fault of theirs."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

CHROMIUM: Final = shutil.which("chromium")
SECONDS: Final = 60.0
expect.set_options(timeout=SECONDS * 1000)
ARTIFACTS: Final = Path(os.environ.get("FETCHER_TEST_ARTIFACTS", "test-artifacts"))
"""Where pictures of pages are kept."""

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_EXPECTED: Final = "Failed to load resource: the server responded with a status of"
"""What Chromium says of each refused request, which tests provoke."""


@contextmanager
def open_browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        helper = stack.enter_context(ThreadPoolExecutor(1))
        helper.submit(bool).result()
        patch.setattr(asyncio, "new_event_loop", lambda: _plain_loop(helper))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def _plain_loop(helper: ThreadPoolExecutor) -> asyncio.AbstractEventLoop:
    """trio-asyncio has put loops in asyncio's place that no synchronous caller may nest. The
    ``helper`` runs from the start: a thread that comes later would be taken for a test's."""
    loop = asyncio.SelectorEventLoop()
    loop.set_default_executor(helper)
    return loop


@contextmanager
def open_page(
    browser: Browser,
    *,
    width: int = 1280,
    height: int = 900,
    dark: bool = False,
    reaches_server: bool = True,
) -> Iterator[Page]:
    """A page of a person who was never here. At its end: nothing was thrown, nothing was refused
    by the Content-Security-Policy, nothing was written to the console as an error.

    Without ``reaches_server`` requests may fail, which Chromium tells there.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
    )
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    faults: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        fails = message.text.startswith("Failed to load resource")
        told = message.text.startswith(_EXPECTED) or (fails and not reaches_server)
        if message.type == "error" and not told:
            faults.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: faults.append(str(error)))
    try:
        yield page
        assert faults == []
    finally:
        context.close()


def keep_picture(page: Page, name: str) -> None:
    """The whole page as a person sees it, for whoever looks at what a run has shown."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)
