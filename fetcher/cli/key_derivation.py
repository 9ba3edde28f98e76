"""`fetcher keys derive` (spec worker-and-events 10.1)."""

import os
import sys

from fetcher.crypto.keys import KeySet, MasterKeyError, decode_master_key

TITLES = {"external": "External HMAC Key (hex)", "storage": "Storage Key (hex)"}


def print_derived_key(*, purpose: str, quiet: bool, key: str) -> int:
    """The environment first, then a line of standard input, then the flag."""
    master = os.environ.get("APP_ENC_KEY", "").strip()
    if not master and not sys.stdin.isatty():
        master = sys.stdin.readline().strip()
    master = master or key.strip()
    if not master:
        print("Error: No master key provided", file=sys.stderr)
        print(
            "Usage: set APP_ENC_KEY, or write the key to standard input, or give --key",
            file=sys.stderr,
        )
        return 1
    try:
        keys = KeySet.from_master(decode_master_key(master), version="")
    except MasterKeyError as refused:
        print(f"Error: {refused}", file=sys.stderr)
        print(
            "Hint: APP_ENC_KEY is base64 of at least 32 bytes: fetcher keys generate",
            file=sys.stderr,
        )
        return 1
    derived = {"external": keys.external_hmac, "storage": keys.storage}[purpose].hex()
    print(derived if quiet else f"{TITLES[purpose]}: {derived}")
    return 0
