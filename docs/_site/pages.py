"""Pages as they are written for reading in a repository, made ready for the site.

Links to files above this folder lead to their pages here. A picture with a dark twin (`front.svg`, `front-dark.svg`)
is shown in the one that fits.
"""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

#: Files above this folder that have a page here.
ABOVE = {"README.md": "/index.md", "CONTRIBUTING.md": "/contributing.md", "CHANGELOG.md": "/changelog.md"}


def on_source(app: Sphinx, page: str, source: list[str]) -> None:
    for name, here in ABOVE.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(name)}", f"]({here}", source[0])
    # a folder that is not part of the site is named, without a link
    source[0] = re.sub(r"\[([^\]]+)\]\((?:\.\./)+[\w-]+/?\)", r"\1", source[0])


def dark_twins(app: Sphinx, tree: nodes.document) -> None:
    """Beside each picture that has a dark twin, put the twin; the theme shows one of them."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for image in list(tree.findall(nodes.image)):
        path = Path(image["uri"])
        twin = path.with_stem(f"{path.stem}-dark")
        if "://" in image["uri"] or not (folder / twin).exists():
            continue
        dark = image.deepcopy()
        dark["uri"] = str(twin)
        dark["classes"] = [*image["classes"], "only-dark"]
        image["classes"] = [*image["classes"], "only-light"]
        image.parent.insert(image.parent.index(image) + 1, dark)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", on_source)
    app.connect("doctree-read", dark_twins, priority=100)
    return {"parallel_read_safe": True}
