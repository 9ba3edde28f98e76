"""The least that quart-trio can serve on the same hypercorn: ``python -m benchmarks.http_peer``.

Prints its port, and serves one short JSON answer until its input ends.
"""

import sys

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from quart import Response
from quart_trio import QuartTrio

app = QuartTrio(__name__)


@app.get("/hello")
async def hello() -> Response:
    return Response(b'{"hello":"world"}', content_type="application/json")


async def main() -> None:
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.accesslog = None
    config.errorlog = None
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        bound = await nursery.start(_served, config, stop)
        print(bound[0].rpartition(":")[2], flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        stop.set()


async def _served(
    config: Config,
    stop: trio.Event,
    task_status: "trio.TaskStatus[list[str]]" = trio.TASK_STATUS_IGNORED,
) -> None:
    await serve(app, config, shutdown_trigger=stop.wait, task_status=task_status)


if __name__ == "__main__":
    trio.run(main)
