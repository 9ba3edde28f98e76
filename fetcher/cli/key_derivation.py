"""`fetcher keys derive` (spec worker-and-events 10.1)."""

import sys

from fetcher.adapters.local.data_folder import DataFolder
from fetcher.cli.exits import EXIT_FAILED
from fetcher.cli.printing import complain, say
from fetcher.cli.shared_options import settings_for, variables_here
from fetcher.crypto.keys import KeySet, MasterKeyError, decode_master_key
from fetcher.domain.errors import StartRefused
from fetcher.log_secrets import live_secrets
from fetcher.settings import SettingsRefused, secret_in

TITLES = {"external": "External HMAC Key (hex)", "storage": "Storage Key (hex)"}


def print_derived_key(*, purpose: str, quiet: bool, key: str) -> int:
    """Raise SettingsRefused where `.env` or APP_ENC_KEY_FILE cannot be read."""
    master = secret_in(variables_here(), "APP_ENC_KEY")
    if not master and not sys.stdin.isatty():
        master = sys.stdin.readline().strip()
    master = master or key.strip() or of_data_folder()
    live_secrets.hold([master])
    if not master:
        complain("Error: No master key provided")
        complain("Usage: set APP_ENC_KEY, or write the key to standard input, or give --key")
        return EXIT_FAILED
    try:
        keys = KeySet.from_master(decode_master_key(master), version="")
    except MasterKeyError as refused:
        complain(f"Error: {refused}")
        complain("Hint: APP_ENC_KEY is base64 of at least 32 bytes: fetcher keys generate")
        return EXIT_FAILED
    derived = {"external": keys.external_hmac, "storage": keys.storage}[purpose].hex()
    say(derived if quiet else f"{TITLES[purpose]}: {derived}")
    return 0


def of_data_folder() -> str:
    """The key that the embedded default made for itself; blank where there is none."""
    try:
        settings = settings_for(None)
        folder = DataFolder(settings.fetcher_data_dir)
        if settings.needs_data_folder and folder.holds_master_key():
            return folder.master_key()[0]
    except (SettingsRefused, StartRefused) as refused:
        # Whoever asks on a machine without the service has no settings; the key is what lacks.
        complain(f"keys derive: {refused}")
    return ""
