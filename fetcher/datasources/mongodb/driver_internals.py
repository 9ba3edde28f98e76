"""What we take from pymongo that it does not promise to keep: all of it is in this module.

Its reads can be interrupted from outside only by the context that each of its connections polls,
a server's name can be proven at an address of our choice only in its TLS context, and it lets
nobody say how many documents are wanted next. A test says which name is missing when a new pymongo
has no more of it.
"""

import ssl
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

import pymongo
from pymongo.command_cursor import RawBatchCommandCursor
from pymongo.cursor import RawBatchCursor
from pymongo.errors import AutoReconnect
from pymongo.synchronous.pool import Connection, Pool

Client: TypeAlias = "pymongo.MongoClient[dict[str, Any]]"
RawBatches: TypeAlias = "RawBatchCursor[Any] | RawBatchCommandCursor[Any]"


class KnownPools:
    """The pools of one client."""

    def __init__(self) -> None:
        pools: list[Pool] = []
        self._is_interrupted = threading.Event()
        is_interrupted = self._is_interrupted.is_set

        class KnownPool(Pool):
            def __init__(self, *arguments: Any, **keywords: Any) -> None:
                super().__init__(*arguments, **keywords)
                pools.append(self)

            def connect(self, *arguments: Any, **keywords: Any) -> Connection:
                if is_interrupted():
                    raise AutoReconnect
                return super().connect(*arguments, **keywords)

        self._pools: Sequence[Pool] = pools
        self.options: dict[str, Any] = {"_pool_class": KnownPool}
        """For the client, which takes them unseen."""

    def interrupt(self) -> None:
        """Make what its connections wait for fail within half a second, from whatever thread; until
        :meth:`resume` no others are opened."""
        self._is_interrupted.set()
        for pool in tuple(self._pools):
            for context in tuple(pool.active_contexts):
                context.cancel()

    def resume(self) -> None:
        self._is_interrupted.clear()


def start(client: Client) -> None:
    """Let the client dial; whoever asks it something does that too, and waits for the answer."""
    client._get_topology()


def ask_for(cursor: RawBatches, documents: int) -> None:
    """In the batches that come next."""
    cursor._batch_size = documents


def tls_context(client: Client) -> ssl.SSLContext | None:
    """How the client encrypts; None where it does not."""
    context: object = client.options.pool_options._ssl_context
    return context if isinstance(context, ssl.SSLContext) else None


def named_socket(name: str) -> type[ssl.SSLSocket]:
    """A socket class that proves ``name`` where the address that was judged is dialled.

    pymongo takes what it dials for the name. ``_create`` is what ``SSLContext.wrap_socket`` calls.
    """

    class NamedSocket(ssl.SSLSocket):
        @classmethod
        def _create(cls, *arguments: Any, **keywords: Any) -> ssl.SSLSocket:
            keywords["server_hostname"] = name
            created: ssl.SSLSocket = super()._create(*arguments, **keywords)  # type: ignore[misc]
            return created

    return NamedSocket
