"""What tests of settings share."""

import pytest

from tests.servers.certificates import Authority


@pytest.fixture(scope="session")
def authority_pem() -> str:
    return Authority().ca
