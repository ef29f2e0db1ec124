"""`reproduce`: measure what is not there yet, draw, write tables and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingData, UnknownName
from ..plots.style import new_figure
from . import comparison, estimates, figures, page, tables
from .claims import Claim, comparison_claims, estimator_claims
from .parts import Parts, Steps
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
    progress: bool | None = None,
) -> Outcome:
    """Write figures, tables and REPORT.md into a folder; pieces that are finished there already are read, not run.

    asked: names out of `FIGURES`. Others that are in the folder already, with all their pieces, are in the report too.
    workers: threads; None: one per core. Numbers depend on the sizes's seed alone.
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
    steps = Steps(0, progress)
    parts = Parts(folder / "parts", steps)
    of_estimates, of_comparison = estimates.pieces(sizes), comparison.pieces(sizes)
    known = [name for name in FIGURES if name in asked or _is_there(name, folder, parts, sizes)]
    missing: str | None = None
    if "fig2" in known:
        try:
            comparison.problem()
        except MissingData as problem:
            if known == ["fig2"]:
                raise
            known.remove("fig2")
            missing = str(problem) if "fig2" in asked else None
    with_estimates = any(name in known for name in ESTIMATOR_FIGURES)
    steps.total = with_estimates * len(of_estimates) + ("fig2" in known) * len(of_comparison)
    try:
        estimated = estimates.measure(sizes, parts) if with_estimates else None
        compared = comparison.measure(sizes, parts, workers) if "fig2" in known else None
    finally:
        if steps.bar is not None:
            steps.bar.stop()

    claims: list[Claim] = []
    if estimated is not None:
        claims += [claim for claim in estimator_claims(estimated) if claim.figure in known]
        if "fig1" in known:
            keys = ("ridge", "mixed", "dr-mix", "least-squares", "ridge-half")
            tables.errors(estimated, keys, ("1", "2-3"), folder / "fig1.csv")
            figures.errors(estimated, folder / "fig1.png")
        if "fig3" in known:
            tables.errors(estimated, ("dr-ridge", "dr-mix", "least-squares"), ("2-3",), folder / "fig3.csv")
            figures.imputation(estimated, folder / "fig3.png")
        if "fig4" in known:
            tables.densities(estimated, ("ridge", "mixed", "dr-mix"), folder)
            figures.densities(estimated, folder / "fig4.png")
    if compared is not None:
        claims += comparison_claims(compared)
        tables.comparison(compared, folder)
        figures.comparison(compared, folder / "fig2.png")
    claims.sort(key=lambda claim: FIGURES.index(claim.figure))
    path = folder / "REPORT.md"
    path.write_text(page.report(sizes, known, claims, estimated, compared, missing), encoding="utf-8")
    return Outcome(path, tuple(known), tuple(claims), missing)


def _is_there(name: str, folder: Path, parts: Parts, sizes: Sizes) -> bool:
    """Whether an earlier call with the same sizes has made a figure."""
    pieces = comparison.pieces(sizes).values() if name == "fig2" else estimates.pieces(sizes).values()
    return (folder / f"{name}.png").exists() and all(parts.path(piece).exists() for piece in pieces)
