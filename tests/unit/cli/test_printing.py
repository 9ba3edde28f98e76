"""What commands print from outside is neither markup nor an order to the terminal."""

import ast
import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

import fetcher.cli
from fetcher.adapters.dead_letters import read_dead_letter
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.cli import dead_letters, topology
from fetcher.cli.config_report import show_notes
from fetcher.cli.demo import Demo, shorten, steps
from fetcher.cli.demo import show as show_demo
from fetcher.cli.printing import cell, complain, print_json, print_plain, say
from fetcher.cli.result_opening import show
from fetcher.commands.dead_letters import Choice, Examined
from fetcher.domain.topology import Finding, FindingStatus
from fetcher.settings import SettingNotes, Settings
from tests.unit.cli.careless_calls import careless_calls

HOSTILE = "\\[/] \\\\[red]x[/red] [/nothing] \x1b[2J\x9b1A\rgone \\"
SHOWN = HOSTILE.replace("\x1b", "\\x1b").replace("\x9b", "\\x9b").replace("\r", "\\r")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen() -> tuple[Console, Screen]:
    written = Screen()
    return Console(file=written, width=400, color_system=None, force_terminal=True), written


def test_a_cell_and_a_paragraph_show_any_text_as_it_is() -> None:
    console, written = screen()
    table = Table()
    table.add_column("name")
    table.add_row(cell(HOSTILE))
    console.print(table)
    print_plain(console, HOSTILE)
    assert written.getvalue().count(SHOWN) == 2
    assert "\x1b" not in written.getvalue()


def test_lines_and_documents_show_any_text(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    complain(HOSTILE)
    print_json({"a": HOSTILE})
    said = capsys.readouterr()
    said_line, document = said.out.splitlines()
    assert (said_line, said.err) == (SHOWN, f"{SHOWN}\n")
    assert json.loads(document) == {"a": HOSTILE}
    assert "\x9b" not in document


def test_a_strangers_dead_letter_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    letter = read_dead_letter(tag=1, body=b"", headers={"x-fetcher-reject-reason": HOSTILE})
    each = Examined(position=1, letter=letter, job_id=None, is_genuine=False, sent_at=None)

    def attempt(command: object) -> int:
        command.args[2](each)  # type: ignore[attr-defined]
        return 1

    monkeypatch.setattr(dead_letters, "attempt", attempt)
    console, written = screen()
    choice = Choice(reason=None, limit=10)
    assert (
        dead_letters.run_list(CommandTarget(settings=Settings()), choice, console, as_json=False)
        == 0
    )
    assert SHOWN in written.getvalue()


def test_a_brokers_answer_is_shown() -> None:
    found = Finding(
        kind="queue", name=HOSTILE, status=FindingStatus.DIFFERS, details=(HOSTILE, "more")
    )
    console, written = screen()
    topology.show([found], console, CommandTarget(settings=Settings()), as_json=False)
    assert written.getvalue().count(SHOWN) == 2


def test_a_warning_on_settings_and_a_row_of_the_demo_are_shown() -> None:
    console, written = screen()
    show_notes(Settings(), SettingNotes(warnings=(HOSTILE,)), console)
    assert SHOWN in written.getvalue()
    assert shorten("[/]\x1b").plain == "[/]\\x1b"


class Opened:
    def chunks(self) -> list[bytes]:
        whole = json.dumps({"a": "ö\x9b1A"}, ensure_ascii=False).encode()
        return [whole[:9], whole[9:]]


@pytest.mark.parametrize("on_terminal", [True, False])
def test_an_opened_result_moves_no_cursor_and_is_byte_by_byte_elsewhere(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, on_terminal: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: on_terminal)
    show(Opened())  # type: ignore[arg-type]
    told = capsysbinary.readouterr().out
    assert json.loads(told) == {"a": "ö\x9b1A"}
    assert (told == b"".join(Opened().chunks())) is not on_terminal


def test_a_name_of_the_demo_is_shown_in_its_titles_and_heads() -> None:
    console, written = screen()
    demo = Demo(folder=Path(), console=console, event={"jobId": HOSTILE})
    wide = {f"column {number}": "x" * 20 for number in range(9)}
    demo.document = {HOSTILE: {"a table": [{HOSTILE: 1, **wide}]}}
    show_demo(demo)
    title, job = f"{SHOWN}.a table: the first of 1 rows", f"job {SHOWN}: signature"
    assert (title in written.getvalue(), job in written.getvalue()) == (True, True)
    assert written.getvalue().count(SHOWN) == 3
    assert "\x1b" not in written.getvalue()


def test_a_step_of_the_demo_is_shown() -> None:
    console, written = screen()
    with steps(console) as step:
        step(HOSTILE)
    assert f"• {SHOWN}" in written.getvalue()
    assert "\x1b[2J" not in written.getvalue()


@pytest.mark.parametrize(
    ("line", "is_plain"),
    [
        ("console.print('settings: OK')", True),
        ("console.print(cell(name))", True),
        ("console.print(Text.assemble(('demo', 'bold'), cell(name)), highlight=False)", True),
        ("table = listing(name)\nself._console.print(table)", True),
        ("progress.update(task, description=cell(name).plain)", True),
        ("print(name)", False),
        ("rich.print(name)", False),
        ("console.print(name)", False),
        ("console.print(f'{name}')", False),
        ("console.print('a', name)", False),
        ("console.print(*names)", False),
        ("console.print(Text(name))", False),
        ("console.print(Text.assemble((name, 'bold')))", False),
        ("table = Table()\nconsole.print(table)", False),
        ("table = listing(name) if name else name\nconsole.print(table)", False),
        ("self._console.log(name)", False),
        ("Console().rule(name)", False),
        ("Table(title=name)", False),
        ("table.add_row(name)", False),
        ("table.add_column(name)", False),
        ("Panel(name)", False),
        ("progress.update(task, description=name)", False),
        ("progress.add_task(name)", False),
        ("sys.stdout.write(name)", False),
        ("sys.stderr.buffer.write(name)", False),
        ("typer.echo(name)", False),
        ("write_bytes(name)", False),
        ("path.write_bytes(name)", True),
    ],
)
def test_what_prints_is_told_apart(line: str, is_plain: bool) -> None:
    assert (careless_calls(ast.parse(line)) == []) is is_plain


def test_commands_print_by_these_means_alone() -> None:
    """A print of anything else would be where the next mistake is."""
    folder = Path(fetcher.cli.__file__).parent
    found = {
        f"{path.name}: {ast.unparse(call)}"
        for path in sorted(folder.glob("*.py"))
        if path.name != "printing.py"
        for call in careless_calls(ast.parse(path.read_text(encoding="utf-8")))
    }
    # seen to above: byte by byte where no terminal is
    assert found == {
        "result_opening.py: write_bytes(chunk)",
        "result_opening.py: write_bytes(visible_in_json(text).encode())",
        # what printing itself prints to, and a constant text ahead of its import
        "output.py: sys.stdout.write(text)",
        "output.py: sys.stdout.buffer.write(content)",
        "__init__.py: print('fetcher: interrupted', file=sys.stderr)",
    }
