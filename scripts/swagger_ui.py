"""Fetches Swagger UI into the package: ``python -m scripts.swagger_ui VERSION`` (needs npm).

Takes what the page needs of the npm package ``swagger-ui-dist``, leaves out the pointers to
source maps, and writes down version and digests, which a test compares.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent.parent / "fetcher" / "api" / "swagger"
RECORD: Final = "swagger-ui.json"
TAKEN: Final = (
    "swagger-ui-bundle.js",
    "swagger-ui-bundle.js.LICENSE.txt",
    "swagger-ui.css",
    "LICENSE",
    "NOTICE",
)
_SOURCE_MAP: Final = re.compile(rb"^.*sourceMappingURL=.*\n?", re.MULTILINE)
_NPM_SECONDS: Final = 120


def main() -> None:
    version = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--silent", f"swagger-ui-dist@{version}"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=_NPM_SECONDS,
        ).stdout.strip()
        with tarfile.open(Path(folder, packed)) as archive:
            for name in TAKEN:
                member = archive.extractfile(f"package/{name}")
                assert member is not None  # noqa: S101 - a package without it is another package
                content = member.read()
                if name.endswith((".js", ".css")):
                    content = _SOURCE_MAP.sub(b"", content)
                (FOLDER / name).write_bytes(content)
    record = {"package": "swagger-ui-dist", "version": version, "sha256": digests()}
    (FOLDER / RECORD).write_text(json.dumps(record, indent=2) + "\n")


def digests() -> dict[str, str]:
    """Of the files as they lie in the package."""
    return {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in TAKEN}


if __name__ == "__main__":
    main()
