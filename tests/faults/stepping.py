"""``python -m tests.faults.stepping --role=worker``: the real command, which can be stopped at each
step of a job's way.

The steps are wrapped around the methods of adapters and use cases before the command is started,
and only here, where a folder for them is named. So the product has no hook: none that could be left
on, and no question in the hot path whether one is.
"""

import functools
import inspect
import os
import signal
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import trio

from tests.faults.steps import FOLDER_VARIABLE, STEPS, Armory, How, Step

SLOW_VARIABLE: Final = "FETCHER_TEST_SLOW_STEP_SEC"


def install(armory: Armory, slow_seconds: float) -> None:
    for step in STEPS:
        for place in step.places:
            module_name, _, path = place.partition(":")
            class_name, method_name = path.split(".")
            owner = getattr(import_module(module_name), class_name)
            method = getattr(owner, method_name)
            wrap = _wrapped_async if inspect.iscoroutinefunction(method) else _wrapped
            setattr(owner, method_name, wrap(method, step, armory, slow_seconds))


def _wrapped_async(
    method: Callable[..., Any], step: Step, armory: Armory, slow_seconds: float
) -> Callable[..., Any]:
    async def stop() -> None:
        if _stopped(step, armory) is How.SLOW_STOP:
            await trio.sleep(slow_seconds)  # the real command, on the real clock

    @functools.wraps(method)
    async def stepping(*arguments: Any, **options: Any) -> Any:
        if not step.after:
            await stop()
        answer = await method(*arguments, **options)
        if step.after and step.counts(answer):
            await stop()
        return answer

    return stepping


def _wrapped(
    method: Callable[..., Any], step: Step, armory: Armory, _slow_seconds: float
) -> Callable[..., Any]:
    """What does not wait cannot be slow."""

    @functools.wraps(method)
    def stepping(*arguments: Any, **options: Any) -> Any:
        if not step.after:
            _stopped(step, armory)
        answer = method(*arguments, **options)
        if step.after and step.counts(answer):
            _stopped(step, armory)
        return answer

    return stepping


def _stopped(step: Step, armory: Armory) -> How | None:
    how = armory.take(step.name)
    if how is not None:
        armory.note(step.name, time.time())
        os.kill(os.getpid(), signal.SIGKILL if how is How.KILL else signal.SIGTERM)
    return how


if __name__ == "__main__":
    if folder := os.environ.pop(FOLDER_VARIABLE, ""):
        install(Armory(Path(folder)), float(os.environ.pop(SLOW_VARIABLE, "0")))
    from fetcher.cli.app import main

    main()
