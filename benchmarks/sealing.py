"""What each step between rows and object costs by itself: ``python -m benchmarks.sealing``.

CPU seconds for a GiB of document, on one core, in pieces as large as a job's: the median of some
rounds in turns. ``sealer`` is the product's own; the others are its parts, and the Engine's digest.
"""

import hashlib
import hmac
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Final

import pybase64
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM

from fetcher.crypto.sealer import ResultSealer

PIECE_BYTES: Final = 512 * 1024
TEXT_SLICE_BYTES: Final = 48 * 1024
PIECES: Final = 128
ROUNDS: Final = 5
KEY: Final = bytes(range(32))
_GIB: Final = 1024**3

Feed = Callable[[memoryview], object]


def _base64(piece: memoryview) -> None:
    for start in range(0, len(piece), TEXT_SLICE_BYTES):
        pybase64.b64encode(piece[start : start + TEXT_SLICE_BYTES])


def steps() -> dict[str, Feed]:
    """New ones for each round."""
    encryptor = Cipher(AES(KEY), GCM(bytes(12))).encryptor()
    room = memoryview(bytearray(PIECE_BYTES + 15))
    return {
        "digest": hashlib.sha256().update,
        "hmac": hmac.new(KEY, digestmod=hashlib.sha256).update,
        "aes_gcm": lambda piece: encryptor.update_into(piece, room),
        "base64": _base64,
        "sealer": ResultSealer(storage_key=KEY, hmac_key=KEY).feed,
    }


def main() -> None:
    piece = memoryview(os.urandom(PIECE_BYTES))
    seconds: dict[str, list[float]] = {name: [] for name in steps()}
    for _ in range(ROUNDS):
        for name, feed in steps().items():
            started = time.process_time()
            for _ in range(PIECES):
                feed(piece)
            seconds[name].append(time.process_time() - started)
    for name, measured in seconds.items():
        per_gib = statistics.median(measured) * _GIB / (PIECES * PIECE_BYTES)
        print(json.dumps({"figure": f"sealing.{name}", "cpu_seconds_per_gib": round(per_gib, 2)}))


if __name__ == "__main__":
    main()
