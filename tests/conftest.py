"""What every test has: hypothesis profiles, the test servers, and the check for leftovers."""

import hypothesis

from tests.scale import scaled

pytest_plugins = [
    "pytester",
    "tests.servers.fixtures",
    "tests.servers.leftovers",
    "tests.servers.mongo_databases",
]

# "too slow" is judged by the wall clock, which on a shared two-core machine judges the neighbours.
hypothesis.settings.register_profile(
    "fetcher",
    max_examples=scaled(25),
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("fetcher")
