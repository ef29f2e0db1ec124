"""`reproduce`: measure what is not there yet, draw, write tables and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..engines import opened
from ..errors import MissingData, UnknownName
from ..plots.style import new_figure
from ..sweeps.cells import Cell
from ..sweeps.store import folder_of
from . import comparison, estimates, figures, page, tables
from .claims import Claim, comparison_claims, estimator_claims
from .sizes import FIGURES, FULL, Sizes

ESTIMATOR_FIGURES = ("fig1", "fig3", "fig4")


@dataclass(frozen=True)
class Outcome:
    """What was reproduced."""

    report: Path
    figures: tuple[str, ...]  # those that are in the report
    claims: tuple[Claim, ...]
    missing: str | None  # why figure 2 could not be had, though it was asked for


def reproduce(
    asked: Sequence[str] = FIGURES,
    out: str | Path = "reproduction",
    sizes: Sizes = FULL,
    *,
    workers: int | None = None,
    engine: str = "threads",
    progress: bool | None = None,
) -> Outcome:
    """Write figures, tables and REPORT.md into a folder; runs that are in its folder `rows` already are not run again.

    asked: names out of `FIGURES`. Others that are in the folder already, with all their runs, are in the report too.
    workers, engine: as in `sweep`. Numbers depend on the sizes's seed alone.
    progress: as in `simulate`.

    Where the data set of figure 2 is not on this machine the other figures are done, and the report says how to get it;
    asked for on its own it raises MissingData.
    """
    for name in asked:
        if name not in FIGURES:
            raise UnknownName("figure", name, FIGURES)
    new_figure(1, 1)  # says at once if drawing is not installed
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    missing: str | None = None
    of_estimates = estimates.cells(sizes)
    known = dict.fromkeys(ESTIMATOR_FIGURES, folder_of(folder / "rows", "estimators", of_estimates))
    try:
        of_comparison = list(comparison.as_they_are(sizes).values())
        known["fig2"] = folder_of(folder / "rows", "algorithms", of_comparison)
    except MissingData as problem:
        if list(asked) == ["fig2"]:
            raise
        missing = str(problem) if "fig2" in asked else None

    def is_there(name: str) -> bool:
        """Whether an earlier call with the same sizes has made a figure."""
        cells: Sequence[Cell] = of_comparison if name == "fig2" else of_estimates
        n = sizes.runs if name == "fig2" else sizes.experiments
        return (folder / f"{name}.png").exists() and all(len(known[name].numbers(cell)) >= n for cell in cells)

    shown = [name for name in FIGURES if name in known and (name in asked or is_there(name))]
    with opened(engine, workers) as where:
        with_estimates = any(name in shown for name in ESTIMATOR_FIGURES)
        estimated = estimates.measure(sizes, known["fig1"], where, progress) if with_estimates else None
        compared = comparison.measure(sizes, known["fig2"], where, progress) if "fig2" in shown else None

    claims: list[Claim] = []
    if estimated is not None:
        claims += [claim for claim in estimator_claims(estimated) if claim.figure in shown]
        if "fig1" in shown:
            keys = ("ridge", "mixed", "dr-mix", "least-squares", "ridge-half")
            tables.errors(estimated, keys, ("1", "2-3"), folder / "fig1.csv")
            figures.errors(estimated, folder / "fig1.png")
        if "fig3" in shown:
            tables.errors(estimated, ("dr-ridge", "dr-mix", "least-squares"), ("2-3",), folder / "fig3.csv")
            figures.imputation(estimated, folder / "fig3.png")
        if "fig4" in shown:
            tables.densities(estimated, ("ridge", "mixed", "dr-mix"), folder)
            figures.densities(estimated, folder / "fig4.png")
    if compared is not None:
        claims += comparison_claims(compared)
        tables.comparison(compared, folder)
        figures.comparison(compared, folder / "fig2.png")
    claims.sort(key=lambda claim: FIGURES.index(claim.figure))
    path = folder / "REPORT.md"
    path.write_text(page.report(sizes, shown, claims, estimated, compared, missing), encoding="utf-8")
    return Outcome(path, tuple(shown), tuple(claims), missing)
