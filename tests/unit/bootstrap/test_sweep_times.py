"""Periods: those of the settings, and longer ones where many tenants are looked after."""

from fetcher.bootstrap.sweep_times import sweep_times
from fetcher.settings import Settings


def test_without_tenants_the_settings_decide_and_everything_begins_at_once() -> None:
    times = sweep_times(Settings(job_dispatch_sweep_sec=3, job_reap_sec=4, outbox_repair_sec=20))
    assert (times.dispatch_seconds, times.reap_seconds, times.repair_seconds) == (3, 4, 20)
    assert (times.tidy_seconds, times.sample_seconds, times.stale_check_seconds) == (4, 15, 30)
    assert [times.first_after(seconds) for seconds in (5.0, 60.0)] == [0, 0]


def test_with_tenants_an_idle_one_is_looked_at_less_often_and_not_all_at_once() -> None:
    times = sweep_times(Settings(multi_tenant_enabled=True))
    assert (times.dispatch_seconds, times.reap_seconds, times.repair_seconds) == (15, 15, 30)
    assert (times.tidy_seconds, times.sample_seconds, times.stale_check_seconds) == (60, 60, 120)
    starts = [times.first_after(15.0) for _ in range(200)]
    assert all(0 <= start <= 15 for start in starts)
    for third in (0.0, 5.0, 10.0):
        assert sum(third <= start < third + 5 for start in starts) > 20


def test_with_tenants_what_was_set_longer_stays() -> None:
    times = sweep_times(
        Settings(multi_tenant_enabled=True, job_reap_sec=90, job_dispatch_sweep_sec=45)
    )
    assert (times.dispatch_seconds, times.reap_seconds, times.tidy_seconds) == (45, 90, 90)
