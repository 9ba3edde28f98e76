#!/usr/bin/env bash
# Pin every dependency with hashes, for Python 3.11 to 3.13, without naming an index.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
for set in build runtime dev testserver audit; do
  "$uv" pip compile "requirements/$set.in" --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet \
    --output-file "requirements/$set.txt" "$@"
done
