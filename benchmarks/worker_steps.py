"""``python -m benchmarks.worker_steps --role=worker``: the real command, with its steps timed.

At its end it writes to the file that ``FETCHER_BENCH_STEPS`` names, as one JSON object, each step's
``[wall, CPU of this process]`` in seconds for each call. The CPU is the step's alone only while
jobs come one after another.
"""

import atexit
import json
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from fetcher.adapters.amqp.consumer import AmqpDelivery
from fetcher.adapters.amqp.publisher import AmqpPublisher
from fetcher.adapters.mongo.connection_breakers import MongoConnectionBreakers
from fetcher.adapters.mongo.connection_records import MongoConnectionRecords
from fetcher.adapters.mongo.event_outbox import MongoEventOutbox
from fetcher.adapters.mongo.job_leases import MongoJobLeases
from fetcher.adapters.s3.upload import S3Upload
from fetcher.cli.app import main
from fetcher_engine import Engine

_STEPS: Final[dict[str, list[tuple[type[Any], str]]]] = {
    "claim": [(MongoJobLeases, "claim")],
    "sources": [
        (MongoConnectionRecords, "find_by_config_names"),
        (MongoConnectionBreakers, "find"),
    ],
    "plan": [(Engine, "plan_extraction")],
    "read": [(Engine, "stream_extraction")],
    "check": [(MongoJobLeases, "check")],
    "put": [(S3Upload, "complete")],
    "settle": [(MongoJobLeases, "finish")],
    "claim_event": [(MongoEventOutbox, "claim_due")],
    "publish": [(AmqpPublisher, "publish")],
    "clear_event": [(MongoEventOutbox, "mark_published")],
    "acknowledge": [(AmqpDelivery, "ack")],
}

_calls: dict[str, list[tuple[float, float]]] = defaultdict(list)


def timed(step: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def run(*args: Any, **kwargs: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return await method(*args, **kwargs)
        finally:
            _calls[step].append((time.perf_counter() - wall, time.process_time() - cpu))

    return run


def write_down() -> None:
    Path(os.environ["FETCHER_BENCH_STEPS"]).write_text(json.dumps(_calls))


if __name__ == "__main__":
    for name, methods in _STEPS.items():
        for owner, method_name in methods:
            setattr(owner, method_name, timed(name, getattr(owner, method_name)))
    atexit.register(write_down)
    main()
