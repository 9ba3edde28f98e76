"""Write docs/schemas and docs/asyncapi.yaml."""

import json
from pathlib import Path
from typing import Final

from scripts.message_documents.asyncapi import document
from scripts.message_documents.schemas import SCHEMAS
from scripts.message_documents.yaml_text import as_yaml

DOCS: Final = Path(__file__).parents[2] / "docs"
_HEAD: Final = "# Generated: `make docs` writes this file from the code of the messages.\n"


def texts() -> dict[Path, str]:
    """Each file's text, by its path below ``docs``."""
    schemas = {
        Path("schemas", f"{name}.json"): json.dumps(make(), indent=2, ensure_ascii=False) + "\n"
        for name, make in SCHEMAS.items()
    }
    return {**schemas, Path("asyncapi.yaml"): _HEAD + as_yaml(document())}


if __name__ == "__main__":
    for path, text in texts().items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")
