"""The console in a real browser, as a person would use it (Debian's Chromium, by Playwright)."""
