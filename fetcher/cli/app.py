"""The commands, and how each ends."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import App, CycloptsError
from rich.console import Console

from fetcher.cli import EXIT_INTERRUPTED
from fetcher.cli.audit_commands import audit_app
from fetcher.cli.connections_commands import connections_app
from fetcher.cli.dlq_commands import dlq_app
from fetcher.cli.exits import (
    EXIT_FAILED,
    EXIT_SETTINGS,
    EXIT_UNREAD,
    wide_console,
)
from fetcher.cli.jobs_commands import jobs_app
from fetcher.cli.keys_commands import keys_app
from fetcher.cli.output import OUTPUT, open_what_is_closed
from fetcher.cli.printing import complain
from fetcher.cli.shared_options import (
    ActorsOption,
    CheckedRoleOption,
    RoleOption,
    TenantOption,
    chosen_tenant,
    loaded_for,
    settings_for,
    target_for,
    variables_here,
)
from fetcher.domain.cancellation import is_interruption, output_failure
from fetcher.logs import mask_uncaught, send_logs_to_stderr
from fetcher.settings import Role, SettingsRefused

if TYPE_CHECKING:
    from fetcher.bootstrap.command_target import CommandTarget

QueueTypeName = Literal["quorum", "classic"]

app = App(
    name="fetcher",
    help="Gets data out of databases that a team does not own.",
    version_flags=["--version"],
    result_action="return_value",
    console=Console(file=OUTPUT),
    # Told below, whether it comes as it is or wrapped by a nursery.
    suppress_keyboard_interrupt=False,
)
app.command(keys_app)
topology_app = App(name="topology", help="The broker's objects and the bucket's rule.")
app.command(topology_app)
app.command(dlq_app)
app.command(audit_app)
app.command(jobs_app)
app.command(connections_app)


def main() -> None:
    """Run one command; never returns."""
    open_what_is_closed()
    send_logs_to_stderr()
    mask_uncaught()
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        code = app(sys.argv[1:], exit_on_error=False, print_error=False)
        OUTPUT.flush()
    except CycloptsError as usage:
        complain(f"fetcher: {usage}")
        return EXIT_SETTINGS
    except SettingsRefused as refused:
        for problem in refused.problems:
            complain(f"fetcher: {problem}")
        return EXIT_SETTINGS
    except BaseException as error:
        if is_interruption(error):
            complain("fetcher: interrupted")
            return EXIT_INTERRUPTED
        failed = output_failure(error)
        if failed is None:
            raise
        if failed.is_unread:
            return EXIT_UNREAD
        complain(f"fetcher: {failed}")
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


@app.default
def serve(*, role: ActorsOption = "all") -> int:
    """Run the service until it is told to stop (SIGTERM or SIGINT)."""
    loaded = loaded_for(role)
    from fetcher.bootstrap import run_service

    return run_service(loaded.settings, Role(role), loaded.notes)


@app.command
def run(*, role: ActorsOption = "all") -> int:
    """The same as `fetcher --role=…`."""
    return serve(role=role)


@app.command
def demo() -> int:
    """Run one whole job on a small shop, from registration to the opened result."""
    from fetcher.cli.demo import run_demo

    return run_demo(wide_console())


@app.command
def check_config(*, role: CheckedRoleOption = "all", json: bool = False) -> int:
    """Check every setting, all violations at once, warn, and show what is in force."""
    loaded = loaded_for(role)
    from fetcher.cli.config_report import show_config

    show_config(loaded.settings, loaded.role, loaded.notes, wide_console(), as_json=json)
    return 0


@app.command
def open_result(
    key: str,
    /,
    *,
    hmac: str = "",
    size: int | None = None,
    output: Path | None = None,
    role: RoleOption = None,
    tenant: TenantOption = None,
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
    """
    from fetcher.bootstrap.results import ExpectedResult
    from fetcher.cli.result_opening import open_stored_result

    if bool(hmac) != (size is not None):
        complain("open-result: --hmac and --size go together")
        return EXIT_SETTINGS
    expected = ExpectedResult(hmac, size) if size is not None else None
    return open_stored_result(target_for(role, tenant), key, expected=expected, output=output)


@app.command
def open_file(
    file: Path,
    /,
    *,
    hmac: str,
    size: int,
    output: Path | None = None,
    role: RoleOption = None,
) -> int:
    """Verify and decrypt a result that was downloaded as it is stored, and print or save it.

    No service and no store is asked. The keys are FETCHER_EXTERNAL_HMAC_KEY and FETCHER_STORAGE_KEY
    (what `fetcher keys derive` prints), else derived from APP_ENC_KEY, or `master.key` of the data
    folder, and APP_ENC_KEY_PREVIOUS. Nothing is printed or saved before all of it was verified.
    Exit codes: 0; 1 it could not be read or written; 2 settings or usage; 3 the file is not the
    result that was stored.

    Parameters
    ----------
    file
        What `GET /v1/fetcher/{id}/result` or the console's download gave, or a copy of the object.
    hmac
        `result.hmac` of the event, `resultHmac` of the job.
    size
        `result.sizeBytes` of the event, `sizeBytes` of the job: of the document, not of this file.
    output
        A file to write to (created with mode 0600) instead of printing.
    """
    from fetcher.bootstrap.results import ExpectedResult
    from fetcher.cli.file_opening import open_sealed_file, result_keys

    keys = result_keys(variables_here(), role)
    expected = ExpectedResult(hmac, size)
    return open_sealed_file(file, keys=keys, expected=expected, output=output)


@app.command
def verify_event(
    file: str = "-",
    /,
    *,
    exchange: str | None = None,
    routing_key: str | None = None,
    json: bool = False,
    role: RoleOption = None,
) -> int:
    """Tell whether messages are events that Fetcher signed, and why not.

    The key is FETCHER_EXTERNAL_HMAC_KEY (what `fetcher keys derive` prints), else derived from
    APP_ENC_KEY, or `master.key` of the data folder, and APP_ENC_KEY_PREVIOUS. Exit codes: 0 all
    are; 2 settings, usage, or nothing that could be read; 3 one is not.

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
    """
    from fetcher.cli import event_verification as verification
    from fetcher.cli.consumer_keys import EXTERNAL_KEY, ConsumerKeyMalformed, consumer_key_in

    try:
        key = consumer_key_in(variables_here(), EXTERNAL_KEY)
    except ConsumerKeyMalformed as malformed:
        complain(f"verify-event: {malformed}")
        return EXIT_SETTINGS
    if key is not None:
        keys = verification.EventKeys(valid=[key])
    else:
        from fetcher.cli.event_keys import keys_of_master

        keys = keys_of_master(settings_for(role))
    route = verification.Route(exchange=exchange, routing_key=routing_key)
    return verification.run_verification(file, keys=keys, route=route, as_json=json)


@app.command
def backup(
    target: Path,
    /,
    *,
    with_master_key: bool = False,
    json: bool = False,
    role: RoleOption = None,
) -> int:
    """Copy the data folder of the embedded default, also while the service runs.

    Records, the results that they name, events and dead letters, with the SHA-256 of each file; not
    `sources/`. Exit codes: 0; 1 it could not be made, and there is none; 2 settings or usage. Where
    standard output takes nothing a backup that was made is 0 all the same.

    Parameters
    ----------
    target
        A folder that does not exist or is empty; it appears when it is whole.
    with_master_key
        Copy `master.key` too: whoever has the backup can then open every result and password.
        Without it, keep that file elsewhere: nothing else can open them.
    json
        The facts as JSON.
    """
    from fetcher.cli.backup import run_backup

    return run_backup(settings_for(role), target, with_master_key=with_master_key, as_json=json)


@app.command
def restore(source: Path, /, *, json: bool = False, role: RoleOption = None) -> int:
    """Bring a backup into an empty data folder and verify every byte of it.

    Exit codes: 0; 1 it could not be restored; 2 settings or usage; 3 it is not as it was made.
    Nothing stays after a failure.

    Parameters
    ----------
    source
        What `fetcher backup` has made. Its master key comes from it, from `master.key` in the data
        folder, or from APP_ENC_KEY.
    json
        The facts as JSON.
    """
    from fetcher.cli.backup import run_restore

    return run_restore(settings_for(role), source, as_json=json)


@app.command
def diagnose(
    *,
    output: Path | None = None,
    url: str | None = None,
    json: bool = False,
    role: RoleOption = None,
    tenant: TenantOption = None,
) -> int:
    """Write one archive for whoever helps: settings with secrets masked, versions, probes, queues,
    jobs, the last failures by their codes, breakers, disks, and what a running service tells.

    Also beside the service, and while dependencies are away: a part that cannot be looked at says
    why in its file. It holds no secret, no row and no filter's value. Exit codes: 0 the archive is
    written; 1 it could not be; 2 settings or usage.

    Parameters
    ----------
    output
        The archive, a .tar.gz that is not there yet; by default a name with host and time in the
        current folder.
    url
        Of a service to ask for its actors, dependencies and breakers, http://host:port; by default
        the one that listens here, if any. FETCHER_ACCESS_TOKEN is sent to it.
    json
        The summary as JSON.
    """
    loaded = loaded_for(role)
    chosen = chosen_tenant(loaded.settings, tenant)
    from fetcher.cli.diagnose import run_diagnosis

    return run_diagnosis(loaded, chosen, wide_console(), output=output, url=url, as_json=json)


@topology_app.command
def declare(
    *,
    queue_type: QueueTypeName = "quorum",
    bucket: bool = False,
    role: RoleOption = None,
    tenant: TenantOption = None,
    json: bool = False,
) -> int:
    """Declare the exchanges, queues and bindings that are missing, and tell what differs.

    Parameters
    ----------
    queue_type
        `classic` for brokers without quorum queues.
    bucket
        Put the bucket's rules where they are missing: unfinished uploads are aborted after a day,
        and results expire where RESULT_RETENTION_DAYS is set.
    """
    return settled_topology(
        target_for(role, tenant),
        creates=True,
        queue_type=queue_type,
        bucket=bucket,
        as_json=json,
    )


@topology_app.command
def verify(
    *,
    queue_type: QueueTypeName = "quorum",
    role: RoleOption = None,
    tenant: TenantOption = None,
    json: bool = False,
) -> int:
    """Tell what is missing or differs on the broker and in the bucket; changes nothing."""
    return settled_topology(
        target_for(role, tenant),
        creates=False,
        queue_type=queue_type,
        bucket=False,
        as_json=json,
    )


def settled_topology(
    target: "CommandTarget",
    *,
    creates: bool,
    queue_type: QueueTypeName,
    bucket: bool,
    as_json: bool,
) -> int:
    from fetcher.adapters.amqp.topology import QueueType
    from fetcher.bootstrap.topology import TopologyOrder
    from fetcher.cli.topology import run_topology

    order = TopologyOrder(create=creates, queue_type=QueueType(queue_type), puts_bucket_rule=bucket)
    return run_topology(target, order, wide_console(), as_json=as_json)
