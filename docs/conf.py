"""How the documentation is built: ``make docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import prudent

project = "Prudent"
copyright = "the Prudent authors, MIT licence"
version = release = prudent.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "executed",
    "formulas",
    "gallery",
    "interactive",
    "reference",
]
myst_enable_extensions = ["attrs_inline", "dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True  # a name that leads nowhere is an error

# Some file systems do not tell prudent.Curve from prudent.curve.
autosummary_filename_map = {f"prudent.{kind}": f"prudent.{kind}-class" for kind in ("Chances", "Curve", "Frontier")}
autodoc_typehints = "none"  # the parameters say what they are; signatures stay readable
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "Prudent"
html_static_path = ["_static"]
html_css_files = ["prudent.css"]
html_js_files = [("budgets.js", {"defer": "defer"})]
html_show_sourcelink = False
html_sidebars = {name: [] for name in ("index", "contributing", "search", "genindex")}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "examples": []},
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
