#!/usr/bin/env bash
# Make the virtual environment and install pinned, hash-checked dependencies.
# usage: scripts/setup.sh runtime|dev
set -euo pipefail
cd "$(dirname "$0")/.."
set_name=${1:-runtime}
venv=${VENV:-.venv}

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  echo "setup: Python 3.11, 3.12 or 3.13 is needed and none was found (set PYTHON to name one)" >&2
  exit 1
}

stamp="$venv/.installed-$set_name"
wanted=$(cat "requirements/$set_name.txt" pyproject.toml engine/pyproject.toml | sha256sum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then
  exit 0
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "setup: Python's venv module is missing: run 'apt-get install python3-venv' as root, then try again" >&2
    exit 1
  fi
  if [ ! -f "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv" 2>/dev/null)" ]; then
    echo "setup: $venv is there and is no virtual environment: name another by VENV, or remove it" >&2
    exit 1
  fi
  echo "setup: making $venv with $("$python" --version)"
  rm -rf "$venv"
  "$python" -m venv "$venv"
fi
echo "setup: installing the $set_name set into $venv"
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${install[@]}" --require-hashes -r "requirements/$set_name.txt"
"${install[@]}" --no-deps --no-build-isolation -e engine -e .
echo "$wanted" > "$stamp"
