"""How the site is built: `make site`. Everything it shows is in this folder, or made from the code."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_site"))

from paretoscout.version import __version__  # noqa: E402

project = "paretoscout"
author = "The paretoscout developers"
release = version = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    # ours, in docs/_site
    "docstrings",
    "generated",
    "notebooks",
    "pages",
]
exclude_patterns = ["_site", "**/.ipynb_checkpoints"]
nitpick_ignore_regex = [("py:.*", r"(?!paretoscout).*"), ("py:.*", r"paretoscout\.(kernels|extend)\..*Array")]

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4

default_role = "code"
smartquotes = False  # --eps stays --eps
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("ArrayLike", "FloatArray", "IntArray", "BoolArray")}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "paretoscout"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_search_scorer = str(DOCS / "_site" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "paretoscout"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search, such as: choose eps",
}
html_sidebars = {page: [] for page in ("index", "tutorial/index", "faq", "contributing", "changelog")}
copyright = author  # noqa: A001 - Sphinx wants this name
