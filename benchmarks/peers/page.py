"""Which answers are right, and the page that says so."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from paretoscout.geometry import eps_optimal, pareto_front
from paretoscout.kernels.arrays import FloatArray
from paretoscout.shown import markdown_table
from paretoscout.simulation.results import rate_interval

HEAD = """# Beside the programs of others

Written by `make peers` on {date} ({machine}). Every program is that of its authors, in an environment of its own, with its own defaults and one
thread. All meet the same problems: options with normal noise of standard deviation 1 in each metric. delta is {delta:g}. eps is half the
smallest gap that decides: so there is one right answer, exactly the front.

- **Promises delta**: whether its authors prove, for the settings that ran, that answers are right with probability {sure:g}.
- **Samples** are medians. Whoever does not stop by himself gets a budget: what scout took with its dial at 0 (median).
- **Failures** are answers that are not right, with an exact 95% interval of their rate. **Bold**: beyond delta for sure. To leave an
  option undecided is no failure.
- **Off** is how many options an answer has too many (+), how many it lacks (−), and how many are undecided (?), on average. –: the
  code says only whether its answer is right.
- **Samples per second** are those of one core, with choosing, deciding and drawing the noise. **Memory** is the largest that the process
  had.
- **Ours** are the same algorithms in paretoscout. Each of these rows is a [sweep](sweeps.md). Those of a problem share a process, and so its
  memory. They ran first and alone; of the others {at_once} at a time.
- Each row has {replicates} runs, or as many as {seconds} s allowed. A run that was cut off at the end is not counted.

"""

AGAIN = """## Run it again

```text
make peers
```

It takes about half an hour on two cores, and {disk} of disk under `.venvs-peers`. Programs come from PyPI; the code of papers does not. Fetch that yourself, make it
run as its authors say, and name it:
`make peers PEERS="--ege-code ../ege --gege-code ../linear_psi --track-and-stop-code ../sequential-pareto-learning-experiments"`.
What is not there is skipped, and the page says so. `PEERS="--only vopy"` runs one program again and keeps what is known of the others.
"""


def judged(means: FloatArray, eps: float, run: Mapping[str, Any]) -> dict[str, Any]:
    """Say of a run whether it is wrong, and how many options it has too many, lacks, or leaves undecided."""
    if run["right"] is not None:
        return {"wrong": not run["right"]}
    options, metrics = means.shape
    returned, undecided = np.zeros(options, np.bool_), np.zeros(options, np.bool_)
    returned[list(run["returned"])] = True
    undecided[list(run["undecided"])] = True
    front, fine = pareto_front(means), eps_optimal(means, np.full(metrics, eps))
    extra, lacking = returned & ~fine, front & ~returned & ~undecided
    return {
        "wrong": bool(extra.any() or lacking.any()),
        "extra": int(extra.sum()),
        "lacking": int(lacking.sum()),
        "undecided": int(undecided.sum()),
    }


def row_of(problem: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum up the runs of a cell."""
    means = np.array(problem["means"])
    all_judged = [judged(means, problem["eps"], run) for run in runs]
    wrong = sum(each["wrong"] for each in all_judged)
    known = [each for each in all_judged if "extra" in each]
    off = {name: statistics.mean(each[name] for each in known) for name in ("extra", "lacking", "undecided") if known}
    return {
        "runs": len(runs),
        "samples": statistics.median(run["samples"] for run in runs),
        "wrong": wrong,
        "interval": rate_interval(wrong, len(runs)),
        "off": off or None,
        "rate": sum(run["samples"] for run in runs) / sum(run["seconds"] for run in runs),
        "peak_mb": max(run["peak_mb"] for run in runs),
    }


def failures(row: Mapping[str, Any], delta: float) -> str:
    """Say how often it was wrong; bold where that is beyond delta for sure."""
    low, high = row["interval"]
    text = f"{row['wrong']} of {row['runs']} ({low:.2f}–{high:.2f})"
    return f"**{text}**" if low > delta else text


def off_by(off: Mapping[str, float] | None) -> str:
    """Say how far answers are off."""
    if off is None:
        return "–"
    signs = (("+", "extra"), ("−", "lacking"), ("?", "undecided"))
    return " ".join(f"{sign}{off[name]:.3g}" for sign, name in signs if off[name]) or "0"


def three_digits(value: float) -> str:
    """Write a number with three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(problem: Mapping[str, Any], cells: Iterable[Mapping[str, Any]], delta: float) -> str:
    """Return the rows of a problem: those that promise something first, then by samples."""
    answered = [cell for cell in cells if cell.get("row")]
    answered.sort(key=lambda cell: (not cell["promises"], cell["row"]["samples"]))
    body = [
        [
            cell["label"],
            "yes" if cell["promises"] else "no",
            f"{row['samples']:,.0f}",
            failures(row, delta),
            off_by(row["off"]),
            three_digits(row["rate"]),
            three_digits(row["peak_mb"]),
        ]
        for cell in answered
        for row in [cell["row"]]
    ]
    header = ["who", "promises delta", "samples", "failures", "off", "samples per second", "memory (MB)"]
    text = f"## {problem['title']}\n\n{problem['says']}\n\n{markdown_table(header, body)}\n"
    for cell in cells:
        if cell.get("why"):
            text += f"\nNot in the table: {cell['label']}: {cell['why']}.\n"
    return text


def installs(peers: Iterable[Mapping[str, Any]]) -> str:
    """Return what each peer is, what it takes to have it, and with which settings it ran."""
    body = [
        [
            peer["name"],
            peer["version"],
            three_digits(peer["size_mb"]),
            f"{peer['import_seconds']:.2f}",
            peer["settings"],
        ]
        for peer in peers
        if "version" in peer
    ]
    header = ["program", "version", "install size (MB)", "import (s)", "how it ran"]
    text = "## What they are\n\nInstall size is all that pip brings, without compiled Python. For the code of a paper it is what the code needs, and its own\n"
    text += "files. Import is in seconds of the processor.\n\n"
    text += markdown_table(header, body) + "\n"
    for peer in peers:
        if "why" in peer:
            text += f"\nSkipped: {peer['name']}: {peer['why']}.\n"
    return text


def page(told: Mapping[str, Any]) -> str:
    """Return the whole page."""
    text = HEAD.format(**told["head"], sure=1.0 - told["head"]["delta"])
    for problem in told["problems"]:
        if "why" in problem:
            text += f"## {problem['title']}\n\nSkipped: {problem['why']}\n\n"
            continue
        cells = [cell for cell in told["cells"] if cell["problem"] == problem["name"]]
        text += table(problem, cells, told["head"]["delta"]) + "\n"
    text += installs(told["peers"]) + "\n"
    return text + AGAIN.format(**told["head"])
