#!/usr/bin/env bash
# The newest supported Python runs the image: where it is found beside another one, the Engine's
# suite, the unit tests and whole lives of the command run on it too. What is left out is about
# databases, tenants, memory, browsers, drawn input and the document of the API, which one Python
# has shown.
# usage: scripts/test_other_python.sh PYTHON-OF-THE-MAIN-SUITE
set -euo pipefail
cd "$(dirname "$0")/.."
newest=3.13

version() {
  "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

if [ "$(version "$1")" = "$newest" ]; then
  exit 0
fi
for candidate in "python$newest" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$newest".*/bin/python; do
  if [ "$(version "$candidate")" = "$newest" ]; then
    export VENV=.venv-$newest PYTHON=$candidate
    scripts/setup.sh dev
    spread=(-n "${TEST_PROCESSES:-2}" --dist loadfile --max-worker-restart 0)
    (cd engine && "../$VENV/bin/python" -m pytest -q "${spread[@]}" --ignore=tests/test_memory_bound.py)
    "$VENV/bin/python" -m pytest -q "${spread[@]}" tests/unit \
      --ignore-glob="*_properties.py" --ignore=tests/unit/crypto/test_mutations.py \
      --ignore=tests/unit/datasources --ignore=tests/unit/tenancy --ignore=tests/unit/benchmarks \
      tests/e2e/test_{demo,start,embedded}.py
    exit 0
  fi
done
echo "test: no Python $newest was found: only $(version "$1") was tested"
