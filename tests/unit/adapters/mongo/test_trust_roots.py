"""Trust roots lie in a file while the client is open, and no longer."""

import tempfile
from pathlib import Path

import pytest

from fetcher.adapters.mongo.trust_roots import trust_roots
from fetcher.domain.errors import StartRefused


def test_the_file_is_there_while_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with trust_roots("PEM") as options:
        assert options["tls"] is True
        assert Path(str(options["tlsCAFile"])).read_text() == "PEM"
    assert list(tmp_path.iterdir()) == []
    with trust_roots("") as nothing:
        assert nothing == {}


def test_a_system_without_a_temporary_folder_refuses_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(StartRefused) as refused, trust_roots("PEM"):
        pytest.fail("it opened")
    assert refused.value.problems == ("MONGO_TLS_CA_CERT: there is no temporary folder for it",)
