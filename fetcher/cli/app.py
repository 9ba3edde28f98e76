"""The commands, and how each ends."""

import sys
from pathlib import Path
from typing import Literal

from cyclopts import App, CycloptsError
from rich.console import Console

from fetcher.cli.dlq_commands import dlq_app
from fetcher.cli.exits import EXIT_SETTINGS, wide_console
from fetcher.cli.shared_options import RoleName, RoleOption, settings_for
from fetcher.logs import send_logs_to_stderr
from fetcher.settings import Role, Settings, SettingsRefused

QueueTypeName = Literal["quorum", "classic"]

app = App(
    name="fetcher",
    help="Gets data out of databases that a team does not own.",
    version_flags=["--version"],
    result_action="return_value",
)
keys_app = App(name="keys", help="Master keys and what is derived from them.")
app.command(keys_app)
topology_app = App(name="topology", help="The broker's objects and the bucket's rule.")
app.command(topology_app)
app.command(dlq_app)


def main() -> None:
    """Run one command; never returns."""
    send_logs_to_stderr()
    try:
        code = app(sys.argv[1:], exit_on_error=False, print_error=False)
    except CycloptsError as usage:
        complain(f"fetcher: {usage}")
        sys.exit(EXIT_SETTINGS)
    except SettingsRefused as refused:
        for problem in refused.problems:
            complain(f"fetcher: {problem}")
        sys.exit(EXIT_SETTINGS)
    sys.exit(code if isinstance(code, int) else 0)


def complain(text: str) -> None:
    print(text, file=sys.stderr)


@app.default
def serve(*, role: RoleOption = "all") -> int:
    """Run the service until it is told to stop (SIGTERM or SIGINT)."""
    settings = settings_for(role)
    from fetcher.bootstrap import run_service

    return run_service(settings, Role(role))


@app.command
def run(*, role: RoleOption = "all") -> int:
    """The same as `fetcher --role=…`."""
    return serve(role=role)


@app.command
def demo() -> int:
    """Run one whole job on a small shop, from registration to the opened result."""
    from fetcher.cli.demo import run_demo

    return run_demo(wide_console())


@app.command
def check_config(*, role: RoleOption = "all", json: bool = False) -> int:
    """Check every setting, all violations at once, and show what is in force."""
    from fetcher.cli.config_report import show_config

    show_config(settings_for(role), Console(), as_json=json)
    return 0


@app.command
def open_result(
    key: str,
    /,
    *,
    hmac: str = "",
    size: int | None = None,
    output: Path | None = None,
    role: RoleOption = "all",
) -> int:
    """Fetch a stored result, verify and decrypt it, and print or save it.

    Nothing is printed or saved before all of it was verified. Exit codes: 0; 1 it could not be
    fetched or written; 2 settings or usage; 3 the object is not the result that was stored.

    Parameters
    ----------
    key
        The object's key: `result.path` of the event, `resultPath` of the job.
    hmac
        The expected HMAC; by default what the event or the job's record says.
    size
        The expected size of the document in bytes; goes with the HMAC.
    output
        A file to write to (created with mode 0600) instead of printing.
    role
        Whose settings to read.
    """
    from fetcher.bootstrap.results import ExpectedResult
    from fetcher.cli.result_opening import open_stored_result

    if bool(hmac) != (size is not None):
        complain("open-result: --hmac and --size go together")
        return EXIT_SETTINGS
    expected = ExpectedResult(hmac, size) if size is not None else None
    return open_stored_result(settings_for(role), key, expected=expected, output=output)


@app.command
def verify_event(
    file: str = "-",
    /,
    *,
    exchange: str | None = None,
    routing_key: str | None = None,
    json: bool = False,
    role: RoleOption = "all",
) -> int:
    """Tell whether messages are events that Fetcher signed, and why not.

    The key is FETCHER_EXTERNAL_HMAC_KEY (what `fetcher keys derive` prints), else derived from
    APP_ENC_KEY and APP_ENC_KEY_PREVIOUS. Exit codes: 0 all are; 2 settings, usage, or nothing that
    could be read; 3 one is not.

    Parameters
    ----------
    file
        JSON with `headers`, `body`, `exchange` and `routingKey`: one, an array, or one a line (the
        local events.jsonl); or messages as RabbitMQ's management interface gives them. By default
        standard input.
    exchange
        Under which it was published, where the message does not say or was dead-lettered.
    routing_key
        The same: job.completed or job.failed.
    json
        A line of JSON for each message.
    role
        Whose settings to read for the key.
    """
    from fetcher.cli import event_verification as verification

    try:
        key = verification.external_key_of_environment()
    except verification.InputUnreadable as unreadable:
        complain(f"verify-event: {unreadable}")
        return EXIT_SETTINGS
    keys = [key] if key is not None else external_keys(settings_for(role))
    route = verification.Route(exchange=exchange, routing_key=routing_key)
    return verification.run_verification(file, keys=keys, route=route, as_json=json)


def external_keys(settings: Settings) -> list[bytes]:
    """The current one first. Exits where there is none: a new key would verify nothing."""
    from fetcher.bootstrap.keys import existing_key_ring
    from fetcher.domain.errors import StartRefused

    try:
        return [keys.external_hmac for keys in existing_key_ring(settings)]
    except StartRefused as refused:
        raise SettingsRefused(list(refused.problems)) from None


@keys_app.command
def generate() -> int:
    """Print a new master key for APP_ENC_KEY."""
    from fetcher.crypto.keys import generate_master_key

    print(generate_master_key())
    return 0


@keys_app.command
def derive(
    *, purpose: Literal["external", "storage"] = "external", quiet: bool = False, key: str = ""
) -> int:
    """Print a key for consumers, derived from APP_ENC_KEY (else standard input, else --key).

    The external key verifies events and results, and lets its holder forge events; the storage key
    decrypts results.

    Parameters
    ----------
    key
        The master key itself. Discouraged: other users of the machine can see it.
    """
    from fetcher.cli.key_derivation import print_derived_key

    return print_derived_key(purpose=purpose, quiet=quiet, key=key)


@topology_app.command
def declare(
    *,
    queue_type: QueueTypeName = "quorum",
    bucket: bool = False,
    role: RoleOption = "all",
    json: bool = False,
) -> int:
    """Declare the exchanges, queues and bindings that are missing, and tell what differs.

    Parameters
    ----------
    queue_type
        `classic` for brokers without quorum queues.
    bucket
        Put the bucket's rule that aborts unfinished uploads after a day, where it is missing.
    """
    return settled_topology(
        creates=True, queue_type=queue_type, bucket=bucket, role=role, as_json=json
    )


@topology_app.command
def verify(
    *, queue_type: QueueTypeName = "quorum", role: RoleOption = "all", json: bool = False
) -> int:
    """Tell what is missing or differs on the broker and in the bucket; changes nothing."""
    return settled_topology(
        creates=False, queue_type=queue_type, bucket=False, role=role, as_json=json
    )


def settled_topology(
    *, creates: bool, queue_type: QueueTypeName, bucket: bool, role: RoleName, as_json: bool
) -> int:
    from fetcher.adapters.amqp.topology import QueueType
    from fetcher.bootstrap.topology import TopologyOrder
    from fetcher.cli.topology import run_topology

    order = TopologyOrder(create=creates, queue_type=QueueType(queue_type), puts_bucket_rule=bucket)
    return run_topology(settings_for(role), order, wide_console(), as_json=as_json)
