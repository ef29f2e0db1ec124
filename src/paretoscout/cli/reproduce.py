"""`paretoscout reproduce`: the paper's figures, and a report on which of its claims hold."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from .conventions import Exit


@click.command(short_help="Run the paper's experiments again; report which claims hold.")
@click.argument("figure", type=click.Choice(["fig1", "fig2", "fig3", "fig4", "all"]), default="all")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for figures (PNG and SVG), numbers (CSV), REPORT.md, and rows/: every run, to go on from.",
)
@click.option("--quick", is_flag=True, help="Fewer experiments: a look in two minutes, no verdicts to rely on.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same result.")
@click.option("--workers", type=click.IntRange(min=1), help="How many, on this machine.  [default: one per core]")
@click.option(
    "--engine", default="threads", show_default=True, metavar="ENGINE", help="Where: as in 'paretoscout sweep'."
)
def reproduce(figure: str, out: Path, quick: bool, seed: int, workers: int | None, engine: str) -> None:
    """Reproduce FIGURE of the paper that pfiwr is from, or all four: draw it, and judge the paper's claims.

    All of it takes up to 20 minutes on two cores. Ctrl-C keeps what is finished; the same command goes on from there.
    Figure 2 needs the data set sw-llvm (see: paretoscout datasets).

    Exit code 0: all that was asked for is in the report, whatever the verdicts; 6: figure 2 is not, for lack of data.
    """
    from ..reproduce import FIGURES, FULL, QUICK
    from ..reproduce import reproduce as run

    sizes = replace(QUICK if quick else FULL, seed=seed)
    try:
        done = run(FIGURES if figure == "all" else [figure], out, sizes, workers=workers, engine=engine, progress=True)
    except KeyboardInterrupt:
        click.echo(f"interrupted: what is finished is in {out / 'rows'}; the same command goes on from there", err=True)
        sys.exit(Exit.INTERRUPTED)
    for claim in done.claims:
        click.echo(f"{claim.verdict:<14} {claim.place}: {claim.text}")
    click.echo(f"report: {done.report}")
    if done.missing is not None:
        click.echo(f"figure 2 is missing: {done.missing}", err=True)
        sys.exit(Exit.FAILED)
