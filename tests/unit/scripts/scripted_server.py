"""A server that says what it is told, whatever it is asked."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE_SECONDS = 20.0


@contextmanager
def scripted_server(
    *answers: bytes, greeting: bytes = b"", hangs_up: bool = False
) -> Iterator[int]:
    """Serve one client on the port given: greet, then give one answer to each thing that it says.

    After that it listens until the client has gone, or hangs up.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_SECONDS)

        def serve() -> None:
            client, _ = listening.accept()
            client.settimeout(PATIENCE_SECONDS)
            with client, suppress(ConnectionError):  # the client may have heard enough
                client.sendall(greeting)
                for answer in answers:
                    client.recv(65536)
                    client.sendall(answer)
                while not hangs_up and client.recv(65536):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            thread.join(PATIENCE_SECONDS)
