"""Write docs/settings.md and config/*.env.example."""

from scripts.settings_document.files import written

if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
