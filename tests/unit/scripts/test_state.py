from pathlib import Path

import pytest

from scripts.servers.daemons import Daemon, Identity
from scripts.servers.state import Running, State, StateError, data_folder, locked

DAEMON = Daemon(name="d", process=Identity(pid=7, started_ticks=11), end_signal=15, log="d.log")
STARTED = Running(name="Fish", port=1, settings={"A": "b c"}, daemons=(DAEMON,), data="")
FOUND = Running(name="Bird", port=2, settings={"B": ""})


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    state = State.load(tmp_path)
    state.put(STARTED)
    state.put(FOUND)
    assert State.load(tmp_path).running == {"Fish": STARTED, "Bird": FOUND}
    state.forget("Fish")
    assert State.load(tmp_path).running == {"Bird": FOUND}


def test_the_settings_are_lines_of_key_and_value(tmp_path: Path) -> None:
    state = State(tmp_path, {"Fish": STARTED, "Bird": FOUND})
    state.write_settings()
    assert (tmp_path / "env").read_text() == "A=b c\nB=\n"


@pytest.mark.parametrize(
    "text",
    ["", "{", "7", "[7]", '[{"name": "x"}]',
     '[{"name": "x", "port": 1, "settings": {}, "data": "", "daemons": [{}]}]'],
)  # fmt: skip
def test_a_damaged_file_stops_the_command(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(StateError, match="is damaged"):
        State.load(tmp_path)


def test_a_server_s_data_goes_when_it_is_forgotten(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "file").touch()
    state = State(tmp_path)
    state.put(Running(name="Fish", port=1, settings={}, data=str(data)))
    state.forget("Fish")
    assert not data.exists()


def test_a_folder_that_other_users_cannot_reach_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.servers.state.LONGEST_FOLDER", 200)
    closed, inside = tmp_path / "closed", tmp_path / "closed" / "inside"
    inside.mkdir(parents=True)
    closed.chmod(0o700)
    assert data_folder([inside, tmp_path], for_others=False).parent == inside
    with pytest.raises(StateError, match="closed/inside"):
        data_folder([inside], for_others=True)


def test_a_folder_whose_path_is_too_long_for_a_socket_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / "long"
    long.mkdir()
    monkeypatch.setattr("scripts.servers.state.LONGEST_FOLDER", len(str(tmp_path)))
    assert data_folder([long, tmp_path], for_others=False).parent == tmp_path


def test_a_second_command_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.servers.state.LOCK_SECONDS", 0)
    second = locked(tmp_path)
    with locked(tmp_path), pytest.raises(StateError, match="has not ended"):
        second.__enter__()
    with locked(tmp_path):
        assert (tmp_path / "lock").exists()
