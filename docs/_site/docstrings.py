"""Docstrings of the package as Sphinx wants them.

They are written to be read in an editor: "name: what it is" for a parameter, Markdown tables, trees. Here that becomes
parameter lists, tables and literal blocks. Types are looked up under the name by which people import them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import paretoscout

#: Where documented modules are, in the order in which a name is looked for.
MODULES = (
    "",
    ".problems",
    ".geometry",
    ".theory",
    ".estimators",
    ".plots",
    ".algorithms",
    ".extend",
    ".errors",
    ".study",
)


def fields_of(what: str, about: Any) -> list[str]:
    """The names that may stand before a colon: parameters of a function or a class, fields of a class."""
    try:
        names = list(inspect.signature(about).parameters)
    except (TypeError, ValueError):
        names = []
    return [*names, *getattr(about, "__annotations__", {})] if what in ("class", "exception") else names


def rewritten(lines: list[str], names: list[str]) -> list[str]:
    """Return a docstring with its parameters, tables and trees as reStructuredText."""
    if names:
        one = "|".join(map(re.escape, sorted(set(names), key=len, reverse=True)))
        starts = re.compile(rf"^((?:{one})(?:, (?:{one}))*): (.*)$")
        # "seconds: how long. workers: how many." on one line
        lines = [part for line in lines for part in re.split(rf"(?<=\.) (?=(?:{one})(?:, (?:{one}))*: )", line)]
    done: list[str] = []
    inside = ""  # the kind of block we are in
    for line in lines:
        found = starts.match(line) if names else None
        kind = (
            "field"
            if found
            else "table"
            if line.startswith("|")
            else "tree"
            if line.startswith(("├", "│", "└"))
            else ""
        )
        if inside == "field" and not kind and line.strip():
            done.append("    " + line.strip())
            continue
        if inside == "tree" and kind != "tree" and line.strip():
            kind = "tree"
        if kind == "tree" and inside != "tree":  # the line before is its root
            root = done.pop()
            done += ["::", "", "    " + root]
        if kind == "table" and inside != "table":
            done += ["", ".. list-table::", "    :header-rows: 1", ""]
        if kind == "field" and inside != "field":
            done.append("")
        if kind == "field" and found:
            done += [f":param {name}: {found[2]}" for name in found[1].split(", ")]
        elif kind == "table":
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if not set(line) <= set("|-: "):
                done += [("    * - " if k == 0 else "      - ") + cell for k, cell in enumerate(cells)]
        elif kind == "tree":
            done.append("    " + line)
        else:
            if inside and line.strip():
                done.append("")
            if line.startswith("    ") and len(done) > 1 and done[-1] == "" and re.search(r"[^:]:$", done[-2]):
                done[-2] += ":"  # code, after a sentence that announces it
            done.append(line)
        inside = kind
    return done


def remarks(about: Any) -> dict[str, str]:
    """What comments say behind the fields of a class: `samples: IntArray  # (R,) how many each replicate took`."""
    if not hasattr(about, "__annotations__"):
        return {}
    try:
        source = inspect.getsource(about)
    except (OSError, TypeError):
        return {}
    found = re.findall(r"^    (\w+): [^#\n]*?  # (.+)$((?:\n {4,}# .+$)*)", source, re.M)
    return {
        name: " ".join([said, *re.findall(r"# (.+)", more)]) for name, said, more in found if not name.startswith("_")
    }


def on_docstring(app: Sphinx, what: str, name: str, about: Any, options: Any, lines: list[str]) -> None:
    known = fields_of(what, about) if what in ("class", "exception", "function", "method") else []
    said = remarks(about) if what == "class" else {}
    missing = [
        f"{field}: {text}" for field, text in said.items() if not any(line.startswith(f"{field}: ") for line in lines)
    ]
    if missing:  # before an example, if there is one
        first = next((k for k, line in enumerate(lines) if line.startswith(">>> ")), len(lines))
        lines[first:first] = ["", *missing, ""]
        known = [*known, *said]
    lines[:] = rewritten(lines, known)


#: Types of arrays, as Python spells them out and as people read them.
SPELLED = {
    r"TypeAliasForwardRef\('(\w+)'\)": r"\1",
    r"ndarray\[tuple\[Any, \.\.\.\], dtype\[float64\]\]": "FloatArray",
    r"ndarray\[tuple\[Any, \.\.\.\], dtype\[bool\]\]": "BoolArray",
    r"ndarray\[tuple\[Any, \.\.\.\], dtype\[int64\]\]": "IntArray",
}


def on_signature(
    app: Sphinx, what: str, name: str, about: Any, options: Any, taken: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    for spelled, short in SPELLED.items():
        taken = taken and re.sub(spelled, short, taken)
        returned = returned and re.sub(spelled, short, returned)
    if taken:  # what begins with a line is nobody's business
        taken = re.sub(r", _\w+: [~\w.]+(?:\[[^\]]*\])?(?: = [^,)]*)?(?=[,)])", "", taken)
    return taken, returned


def found_elsewhere(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Node) -> nodes.Node | None:
    """Resolve `paretoscout.statement.Metric` as `paretoscout.Metric`, the name by which people import it.

    What has no page of its own, such as the parts of a standing, is shown without a link.
    """
    if node["refdomain"] != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    python = env.domains.python_domain
    for module in MODULES:
        target = f"paretoscout{module}.{last}"
        if target in python.objects:
            return python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, shown)
    home, _, name = node["reftarget"].rpartition(".")
    inside = home.startswith("paretoscout") and hasattr(importlib.import_module(home), name)
    return shown if inside or (not home and any(hasattr(m, last) for m in _inner())) else None


def with_dashes(app: Sphinx, tree: nodes.document) -> None:
    """Sphinx puts two hyphens between a parameter and what it is; everywhere else two hyphens are an option."""
    for text in [text for text in tree.findall(nodes.Text) if text.astext() == " -- "]:
        text.parent.replace(text, nodes.Text(" – "))


def _inner() -> list[Any]:
    return [paretoscout, *(importlib.import_module(f"paretoscout{name}") for name in MODULES[1:])]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", on_docstring)
    app.connect("autodoc-process-signature", on_signature)
    app.connect("missing-reference", found_elsewhere)
    app.connect("doctree-read", with_dashes)
    return {"parallel_read_safe": True}
