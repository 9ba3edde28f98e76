import subprocess
import sys
import threading

import pytest
import trio

from tests.servers import leftovers


def test_a_child_process_is_seen_until_somebody_waited_for_it() -> None:
    before = leftovers.current()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        left = leftovers.current().since(before)
        assert left.processes == {child.pid}
        child.kill()
    assert not leftovers.current().since(before)


def test_a_thread_is_seen_until_it_ends() -> None:
    before = leftovers.current()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="forgotten")
    thread.start()
    left = leftovers.current().since(before)
    stop.set()
    thread.join()
    assert left.threads == {thread}
    assert left.describe() == "thread 'forgotten'"
    assert not leftovers.current().since(before)


async def test_an_idle_thread_of_trio_is_no_leftover() -> None:
    before = leftovers.current()
    await trio.to_thread.run_sync(int)
    assert not leftovers.current().since(before)


FORGOTTEN_ENDS = threading.Event()
FORGETFUL_TEST = """
import threading
from tests.servers.test_leftovers import FORGOTTEN_ENDS

def test_forgetful():
    threading.Thread(target=FORGOTTEN_ENDS.wait, name="forgotten", daemon=True).start()
"""


def test_a_forgetful_test_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "GRACE_SECONDS", 0.05)
    pytester.makepyfile(FORGETFUL_TEST)
    try:
        result = pytester.runpytest_inprocess("-p", leftovers.__name__, "-p", "no:cacheprovider")
    finally:
        FORGOTTEN_ENDS.set()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the test left behind: thread 'forgotten'*"])
