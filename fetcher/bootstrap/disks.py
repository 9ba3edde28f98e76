"""How full the disks of our folders are."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import trio

from fetcher.actors.sampled_metrics import SampledMetrics
from fetcher.actors.sampler import Sample
from fetcher.domain.errors import PortUnavailable


def disk_sample(folders: Mapping[str, Path], metrics: SampledMetrics) -> Sample:
    """Asked in one thread of its own: a network disk may hang, and hangs nobody else then."""
    return partial(_look, folders, metrics, trio.CapacityLimiter(1))


async def _look(
    folders: Mapping[str, Path], metrics: SampledMetrics, thread: trio.CapacityLimiter
) -> None:
    for place, folder in folders.items():
        try:
            found = await trio.to_thread.run_sync(
                os.statvfs, folder, limiter=thread, abandon_on_cancel=True
            )
        except OSError:
            raise PortUnavailable("the disk does not answer") from None
        metrics.disk_free.labels(place=place).set(found.f_bavail * found.f_frsize)
        metrics.disk_size.labels(place=place).set(found.f_blocks * found.f_frsize)
