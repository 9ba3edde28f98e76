"""What the Engine's suite asks of its own adapters, asked of the host's.

The Engine's tests run on a copy of it, since they know no host.
"""

from typing import Any

from fetcher.concurrency import TrioConcurrency

from .engine_suite import engine_module, engine_test_modules

for _module in map(engine_module, engine_test_modules()):
    globals().update({n: test for n, test in vars(_module).items() if n.startswith("test_")})


def test_the_engines_tests_are_all_here_and_run_on_the_hosts_port(loop: Any) -> None:
    assert isinstance(loop.concurrency, TrioConcurrency)
    assert {
        "test_jobs_start_in_order_and_all_run",
        "test_clean_up_of_a_nursery_that_fails_when_cut_off_is_swallowed",
        "test_producer_waits_where_the_costs_pass_the_bound",
    } <= globals().keys()
