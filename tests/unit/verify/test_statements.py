"""What `make verify-sources` sends to the servers that do not run here."""

import pytest

from fetcher.domain.connections import SourceType
from tests.verify.golden import UNSEEN, golden_file
from tests.verify.tables import golden_text


@pytest.mark.parametrize("kind", UNSEEN)
def test_statements_are_the_golden_ones(kind: SourceType) -> None:
    assert golden_text(kind) == golden_file(kind).read_text(encoding="utf-8")
