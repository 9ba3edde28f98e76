"""The commands below `fetcher keys`, and their options."""

from typing import Literal

from cyclopts import App

from fetcher.cli.printing import say
from fetcher.cli.shared_options import RoleOption, TenantOption, target_for

keys_app = App(name="keys", help="Master keys and what is derived from them.")


@keys_app.command
def generate() -> int:
    """Print a new master key for APP_ENC_KEY."""
    from fetcher.crypto.keys import generate_master_key

    say(generate_master_key())
    return 0


@keys_app.command
def derive(
    *, purpose: Literal["external", "storage"] = "external", quiet: bool = False, key: str = ""
) -> int:
    """Print a key for consumers, derived from the master key.

    That is APP_ENC_KEY, else a line of standard input, else --key, else `master.key` of the data
    folder.

    The external key verifies events and results, and lets its holder forge events; the storage key
    decrypts results.

    Parameters
    ----------
    key
        The master key itself. Discouraged: other users of the machine can see it.
    """
    from fetcher.cli.key_derivation import print_derived_key

    return print_derived_key(purpose=purpose, quiet=quiet, key=key)


@keys_app.command
def rotate(
    *,
    dry_run: bool = False,
    json: bool = False,
    role: RoleOption = None,
    tenant: TenantOption = None,
) -> int:
    """Seal stored credentials anew under APP_ENC_KEY, also beside the running service.

    Passwords and TLS keys of all connections, as far as they are sealed under another key of
    APP_ENC_KEY_PREVIOUS. It may be broken off and run again: what was done is found done. Whoever
    changes a connection at the same time wins. Exit codes: 0 all are under the key in use; 1 some
    are left, or the record store went away; 2 settings or usage.

    Parameters
    ----------
    dry_run
        Write nothing and tell what would be done: 1 where something would.
    json
        The facts as JSON; progress goes to standard error.
    """
    from fetcher.cli.key_rotation import run_rotation

    return run_rotation(target_for(role, tenant), dry_run=dry_run, as_json=json)
