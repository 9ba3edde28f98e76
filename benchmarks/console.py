"""How smoothly the console scrolls, by the browser's own clock: ``python -m benchmarks.console``.

A list of 5 000 tables (a real SQLite file) and one of 10 000 jobs, which the page is answered page
by page in the service's place. Each scrolls on with every frame, for 5 s. The peer is the same page
at rest, in the same browser: a frame there takes what the machine gives. Chromium here has neither
a screen nor a graphics processor. ``python -m benchmarks.console`` needs Chromium on the path.
"""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, Route, expect

from tests.console.browser import CHROMIUM, open_browser, open_page
from tests.console.places import console, make_shop, register
from tests.e2e.cluster import embedded

TABLES: Final = 5_000
JOBS: Final = 10_000
SECONDS: Final = 5.0
_FRAMES: Final = """
async ([selector, pixels, seconds]) => {
  const box = document.querySelector(selector);
  const frames = [];
  let last = performance.now();
  const until = last + seconds * 1000;
  while (last < until) {
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
    if (box && pixels) box.scrollTop += pixels;
  }
  return [frames, box ? box.scrollTop : 0];
}
"""


def frames_of(page: Page, pixels: int) -> tuple[list[float], float]:
    """Milliseconds of each frame while the list scrolls so far with each, and where it came to."""
    frames, top = page.evaluate(_FRAMES, [".rows", pixels, SECONDS])
    return sorted(frames), top


def line(name: str, entries: int, page: Page, pixels: int) -> dict[str, Any]:
    rest, _ = frames_of(page, 0)
    frames, top = frames_of(page, pixels)
    middle, most = len(frames) // 2, int(len(frames) * 0.99)
    return {
        "figure": f"console.{name}",
        "entries": entries,
        "scrolled_pixels": round(top),
        "elements": page.evaluate("document.querySelectorAll('.row').length"),
        "frame_ms": round(frames[middle], 1),
        "frame_ms_p99": round(frames[most], 1),
        "frame_ms_at_rest": round(rest[len(rest) // 2], 1),
        "ratio": round(frames[middle] / rest[len(rest) // 2], 2),
    }


def a_page_of_jobs(route: Route) -> None:
    """What ``GET /v1/fetcher`` answers, of a service with so many jobs."""
    query = parse_qs(urlsplit(route.request.url).query)
    start = int(query.get("cursor", ["0"])[0])
    limit = int(query["limit"][0])
    now = datetime(2026, 11, 30, tzinfo=UTC)
    items = [
        {
            "id": f"01a22d37-8dcd-7f80-8ae1-{number:012x}",
            "status": ("completed", "failed", "cancelled")[number % 3],
            "source": "acme-reports",
            "connections": ["shop"],
            "createdAt": (now - timedelta(seconds=number)).isoformat(),
            "startedAt": (now - timedelta(seconds=number)).isoformat(),
            "completedAt": (now - timedelta(seconds=number - 2)).isoformat(),
            "rowCount": number,
            "sizeBytes": number * 100,
        }
        for number in range(start, min(start + limit, JOBS))
    ]
    body: dict[str, object] = {"items": items, "limit": limit}
    if start + limit < JOBS:
        body["nextCursor"] = str(start + limit)
    route.fulfill(json=body)


def main() -> None:
    if CHROMIUM is None:
        print(json.dumps({"figure": "console", "skipped": "chromium is not on the path"}))
        return
    with (
        tempfile.TemporaryDirectory(prefix="fetcher-bench-") as folder,
        embedded(Path(folder)) as (_, api),
        open_browser() as browser,
        open_page(browser) as page,
    ):
        make_shop(Path(folder), tables=TABLES)
        connection = register(api)["id"]
        page.goto(console(api, f"/connections/{connection}/schema"))
        expect(page.get_by_role("listitem").first).to_be_visible()
        print(json.dumps(line("tables", TABLES, page, 120)), flush=True)
        page.route("**/v1/fetcher?*", a_page_of_jobs)
        page.goto(console(api, "/jobs"))
        expect(page.get_by_role("listitem").first).to_be_visible()
        print(json.dumps(line("jobs", JOBS, page, 2_000)), flush=True)


if __name__ == "__main__":
    main()
