"""The README's examples run as they stand."""

import subprocess
import sys

from .readme import README, python_blocks


def test_examples_run_one_after_the_other() -> None:
    program = "\n".join(python_blocks())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=README.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_there_is_an_example_without_a_loop_and_one_on_asyncio() -> None:
    first, _port, asyncio_example = python_blocks()
    assert "run_trampoline(extract())" in first
    assert "asyncio.run(main())" in asyncio_example
