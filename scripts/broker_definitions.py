"""Write config/rabbitmq/definitions.json from the table that is declared and verified."""

import json
from pathlib import Path

from fetcher.adapters.amqp.topology import TopologyNames, definitions, topology
from fetcher.settings import Settings

PATH = Path(__file__).parents[1] / "config" / "rabbitmq" / "definitions.json"


def document() -> str:
    """With the timeout of the default settings: RabbitMQ before 3.12 ignores it."""
    timeout_ms = int(Settings().rabbitmq_consumer_timeout_sec * 1000)
    wanted = topology(TopologyNames(), consumer_timeout_ms=timeout_ms)
    return json.dumps(definitions(wanted), indent=2) + "\n"


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(document(), encoding="utf-8")
