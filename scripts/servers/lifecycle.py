"""Bringing servers up and taking them down."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from scripts.servers import daemons
from scripts.servers.catalogue import LOOPBACK, Service
from scripts.servers.launches import Launch, Place
from scripts.servers.probes import NotAdmittedError
from scripts.servers.state import Running, State, data_folder

Install = Callable[[Sequence[str]], None]
"""Installs packages of the system; raises what it likes when it can't."""


class MissingError(Exception):
    """Servers that neither run nor are installed; the text says how to get them."""


def up(
    state: State,
    services: Sequence[Service],
    *,
    environment: Mapping[str, str],
    install: Install | None,
    for_others: bool,
) -> None:
    """Bring up the servers that are not in use yet, and write down what tests need to know.

    ``install`` is ``None`` where we may not install; ``for_others`` says that servers run as other
    users than ourselves. Whatever ends this early, what it started is ended again.

    Raises:
        MissingError: a server can be neither found nor started.
        DaemonError, VenvError: one did not start.
        StateError: there is no place for their data.
    """
    wanted = [service for service in services if not _is_in_use(service, state, environment)]
    launches = _launches(wanted, install)
    try:
        for service in wanted:
            _start(service, launches[service.name], state, for_others=for_others)
        for service in wanted:
            running = state.running[service.name]
            daemons.wait_ready(
                running.daemons[-1],
                partial(refusal, service, running.port),
                deadline_seconds=service.start_seconds,
            )
    except BaseException:  # an interruption, too, must leave no server behind
        down(state, [service.name for service in wanted])
        raise
    state.write_settings()


def down(state: State, names: Sequence[str]) -> list[str]:
    """End those of the named servers that we started, and forget all of the named.

    Gives the names of processes that had to be killed.
    """
    ours = [state.running[name] for name in names if name in state.running]
    late = daemons.stop([daemon for running in ours for daemon in reversed(running.daemons)])
    for running in ours:
        state.forget(running.name)
    return late


def refusal(service: Service, port: int) -> str | None:
    """Why the server on this port can't be used; ``None`` when it can."""
    try:
        service.admits(LOOPBACK, port)
    except NotAdmittedError as reason:
        return str(reason)
    return None


def _is_in_use(service: Service, state: State, environment: Mapping[str, str]) -> bool:
    private = environment.get("FETCHER_SERVICES") == "private"
    recorded = state.running.get(service.name)
    named = environment.get(service.variable)
    if recorded and named == recorded.settings.get(service.variable):
        named = None  # whoever has read .services/env into a shell names what is up
    if recorded:
        keep = not named and (bool(recorded.daemons) or not private)
        if keep and refusal(service, recorded.port) is None:
            return True
        down(state, [service.name])
    if named:
        return True
    port = service.usual_port
    if private or port is None or refusal(service, port) is not None:
        return False
    state.put(Running(name=service.name, port=port, settings=service.settings(port)))
    return True


def _launches(wanted: Sequence[Service], install: Install | None) -> Mapping[str, Launch]:
    found = {service.name: service.find() for service in wanted if service.package}
    packages = [s.package for s in wanted if s.package and found[s.name] is None]
    if packages and install:
        install(packages)
    found = {service.name: service.find() for service in wanted}
    missing = [service for service in wanted if found[service.name] is None]
    if missing:
        raise MissingError(_missing_text(missing))
    return {name: launch for name, launch in found.items() if launch}


def _missing_text(missing: Sequence[Service]) -> str:
    packages = [service.package for service in missing if service.package]
    lines = [f"missing: {', '.join(service.name for service in missing)}"]
    if packages:
        command = "apt-get install --no-install-recommends " + " ".join(packages)
        lines.append(f"  as root: {command}")
    lines += [f"  {service.name}: {service.remedy}" for service in missing if service.remedy]
    variables = ", ".join(service.variable for service in missing)
    lines.append(f"  or name running ones by {variables}")
    return "\n".join(lines)


def _start(service: Service, launch: Launch, state: State, *, for_others: bool) -> None:
    port = daemons.free_port()
    home = data_folder([state.folder, Path(tempfile.gettempdir())], for_others=for_others)
    log = state.folder / f"{service.name.lower()}.log"
    log.unlink(missing_ok=True)
    entry = Running(name=service.name, port=port, settings=service.settings(port), data=str(home))
    state.put(entry)  # before the start, so that its folder is removed whatever happens

    def started(daemon: daemons.Daemon) -> None:
        current = state.running[service.name]
        state.put(replace(current, daemons=(*current.daemons, daemon)))

    launch(Place(data=home / "data", log=log, port=port), started)
