"""`paretoscout page`: a study as one page that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import InvalidInput
from ..shown import line
from .options import NAME, load, study_options


@click.command(short_help="Write a page of the study that works offline.")
@click.argument("study", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    default=Path("page.html"),
    show_default=True,
    help="Where it goes.",
)
@study_options
def page(study: str | None, out: Path, storage: str, name: str) -> None:
    """Write what is known of STUDY to one file: the answer, the trade-off, why each option has its verdict, all runs.

    The file needs nothing else: open it in a browser, send it to somebody. STUDY is the same as --name.
    """
    from ..page import Frame, study_page, view_of
    from . import show

    if study is not None and name not in (NAME, study):
        raise InvalidInput(f"STUDY and --name must be the same study, got {study!r} and {name!r}")
    show.in_a_folder(out)
    there = load(storage, study or name)
    view = view_of(there)
    out.write_text(study_page(view, frame=Frame(now=there.log.clock(), alone=True)), encoding="utf-8")
    click.echo(line(f"page: {out}"))
