"""Write the tables of docs/algorithms.md again, from what the algorithms say of themselves.

python tools/algorithms_page.py
"""

import re
from pathlib import Path

from paretoscout import algorithms
from paretoscout.algorithms.contract import KINDS
from paretoscout.algorithms.ranges import settings_of

PAGE = Path(__file__).parent.parent / "docs" / "algorithms.md"


def rows(head: str, body: list[list[str]]) -> str:
    """Return a table; what is in it breaks no cell."""
    titles = head.split(", ")
    lines = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in row] for row in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")


def tables() -> dict[str, str]:
    """Return the tables of the page by their names."""
    records = sorted(map(algorithms.get, algorithms.available()), key=lambda each: list(KINDS).index(each.kind))
    listed, settings = [], []
    for each in records:
        made_for = each.setting + ("; one metric" if each.one_metric else "")
        listed.append([f"`{each.name}`", each.kind, made_for, "yes" if each.guarantees else "no", each.paper])
        for name, default, allowed in settings_of(each.settings):
            if name != "sigma":
                settings.append([f"`{each.name}`", f"`{name}`", f"`{default!r}`", str(allowed)])
    return {
        "algorithms": rows("name, kind, made for, delta means delta, paper", listed),
        "settings": rows("algorithm, setting, default, what it may be", settings),
    }


def renewed(text: str) -> str:
    """Return the text of the page with its tables as they are now: each stands between two marks."""
    for name, table in tables().items():
        mark = f"<!-- generated: {name} -->"
        text, found = re.subn(rf"{mark}\n.*?\n{mark}", lambda _, t=table, m=mark: f"{m}\n{t}\n{m}", text, flags=re.S)
        assert found == 1, f"docs/algorithms.md must have two marks {mark}"
    return text


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
