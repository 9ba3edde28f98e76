"""Write the golden statements anew: ``python -m tests.operators.golden``; then read the diff."""

from tests.operators.statements import GOLDEN, STATEMENTS, golden_file, golden_text


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for kind in STATEMENTS:
        golden_file(kind).write_text(golden_text(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
