"""The table of what workers held, in Markdown."""

from collections.abc import Sequence
from typing import Final

from tests.faults.memory_figures import AtOnceMeasured, SizesMeasured

BEGIN: Final = "<!-- memory: written by its test -->\n"
END: Final = "<!-- end of memory -->\n"


def table(figures: Sequence[SizesMeasured | AtOnceMeasured]) -> str:
    of_sizes = [each for each in figures if isinstance(each, SizesMeasured)]
    sizes = list(of_sizes[0].peaks_mib)
    lines = [
        "Peak in MiB, by the size of the result:",
        "",
        f"| source | idle | {' | '.join(f'{size} MB' for size in sizes)} | growth | flat within |",
        "|---|---|" + "---|" * (len(sizes) + 2),
    ]
    lines += [
        f"| {each.kind} | {each.idle_mib:.0f} |"
        f" {' | '.join(_cell(each, size) for size in sizes)} |"
        f" {each.growth_mib:.0f} | {100 * (each.ratio - 1):.0f} % |"
        for each in of_sizes
    ]
    lines += [
        f"\n{each.jobs} jobs of {each.megabytes} MB at once: {each.peak_mib:.0f} MiB,"
        f" {each.growth_mib:.0f} above idle."
        for each in figures
        if isinstance(each, AtOnceMeasured)
    ]
    return "\n".join(lines) + "\n"


def _cell(figure: SizesMeasured, size: int) -> str:
    peak = figure.peaks_mib.get(size)
    return "" if peak is None else f"{peak:.0f}"
