"""config/rabbitmq/definitions.json is what `fetcher topology declare` declares."""

import json

from scripts.broker_definitions import PATH, document


def test_the_file_is_what_the_table_says() -> None:
    """Else: ``make docs``."""
    assert PATH.read_text(encoding="utf-8") == document()


def test_it_ships_no_user_and_the_totals_of_the_wire() -> None:
    shipped = json.loads(document())
    assert {name: len(each) for name, each in shipped.items()} == {
        "vhosts": 1,
        "exchanges": 3,
        "queues": 4,
        "bindings": 4,
    }
    assert "password" not in document()
