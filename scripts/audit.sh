#!/usr/bin/env bash
# Ask for known vulnerabilities of every pinned package: Python's by pip-audit, the page's by npm.
# It needs the network: exit code 2 says that nothing was asked, 1 that something was found.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
venv=.venv-audit

if ! [ -x "$venv/bin/pip-audit" ]; then
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    -r requirements/audit.txt
fi

found=0
told=$(mktemp)
trap 'rm -f "$told"' EXIT
for set_name in runtime dev build; do
  echo "audit: requirements/$set_name.txt"
  if "$venv/bin/pip-audit" --strict --disable-pip --require-hashes --progress-spinner off \
    -r "requirements/$set_name.txt" >"$told" 2>&1; then
    cat "$told"
  elif grep -q "known vulnerabilit" "$told"; then
    cat "$told"
    found=1
  else
    tail -n 1 "$told" | cut -c1-300 >&2
    echo "audit: the advisories could not be read, so nothing is known" >&2
    exit 2
  fi
done
if command -v npm >/dev/null; then
  echo "audit: console/package-lock.json"
  if ! (cd console && npm audit --package-lock-only) >"$told" 2>&1; then
    cat "$told"
    grep -q "severity" "$told" || exit 2
    found=1
  fi
fi
exit "$found"
