from fetcher.domain.member_paths import member


def test_plain_names_are_joined_by_dots() -> None:
    assert member("dataRequest.filters", "sales-db_9") == "dataRequest.filters.sales-db_9"
    assert member("", "metadata") == "metadata"


def test_other_names_are_quoted_so_that_the_path_stays_readable() -> None:
    assert member("f", "public.orders") == 'f["public.orders"]'
    assert member("f", 'a"b\n') == 'f["a\\"b\\n"]'
    assert member("f", "9a") == 'f["9a"]'


def test_long_names_are_cut() -> None:
    assert len(member("f", "x" * 10_000)) < 120
