"""What surrounds a page: links that the one who serves it knows, and where a click leads."""

from __future__ import annotations

from dataclasses import dataclass

from .choice import Choice
from .view import Option


@dataclass(frozen=True)
class Download:
    """A file to take away."""

    label: str  # "Runs, CSV"
    href: str
    note: str = ""  # "720 rows"


@dataclass(frozen=True)
class Frame:
    """What the one who serves a page adds. A link that is empty is not shown."""

    now: float = 0.0  # what time it is, in seconds since 1970
    static: str = "static/"  # before the names of our own files
    home: str = ""  # the list of studies
    here: str = ""  # the page itself, without its query
    events: str = ""  # where live events come from: a stream of server-sent events; empty: the page is not live
    share: str = ""  # the link to give to others
    share_note: str = ""  # what those can do who have it
    downloads: tuple[Download, ...] = ()
    links: tuple[tuple[str, str], ...] = ()  # in the footer: text and address
    sign_in: str = ""  # where the form to sign in goes
    sign_out: str = ""  # where the form to sign out goes
    user: str = ""  # who is signed in
    csrf: str = ""  # a secret that forms carry
    alone: bool = False  # one file that needs nothing else: styles and script are in it


@dataclass(frozen=True)
class Links:
    """Where a click leads, on one page."""

    choice: Choice
    here: str = ""
    alone: bool = False  # in one file, evidence is further down the page

    def to(self, choice: Choice) -> str:
        """Return the link to what somebody may choose."""
        return f"{self.here}{choice.query()}"

    def option(self, option: Option) -> str:
        """Return the link to the evidence of an option."""
        if self.alone:
            return f"#why-{option.k}"
        return self.to(self.choice.but(option=option.name, rival=None)) + "#why"

    def view(self, view: str) -> str:
        """Return the link to another way to see the trade-off."""
        return self.to(self.choice.but(view=view)) + "#trade-off"

    def sort(self, by: str) -> str:
        """Return the link to the table in another order; by the same column, the other way round."""
        now = self.choice.sort
        return self.to(self.choice.but(sort=f"-{by}" if now == by else by)) + "#options"

    def everything(self) -> str:
        """Return the link to the table with every option."""
        return self.to(self.choice.but(all=True)) + "#options"

    def metrics(self, x: str, y: str) -> str:
        """Return the link to two metrics."""
        return self.to(self.choice.but(x=x, y=y, view="plane")) + "#trade-off"
