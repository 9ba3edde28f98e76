"""A replica in a process of its own: six tests of one connection, the waits on its output."""

import sys

import trio

from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.limiter import RedisTestLimiter
from tests.servers.redis_servers import opened_redis


async def main(port: int) -> None:
    async with opened_redis(RedisAddress(host="127.0.0.1", port=port)) as server:
        limiter = RedisTestLimiter(server)
        for _ in range(6):
            print("wait", await limiter.take("c1"))


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]))
