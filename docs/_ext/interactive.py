"""What readers can drag or read better: a figure of budget and penalty, and names that break between their words."""

import html
import json
import re

from docutils import nodes
from executed import Page
from sphinx.util.docutils import SphinxDirective

NAME = re.compile(r'(<span class="(?:pre|sig-prename descclassname|sig-name descname)">)([^<]{13,})(</span>)')
TITLE = re.compile(r"(<h1>)([^<]{13,})(<a )")


class Budgets(SphinxDirective):
    """``{budgets} NAME``: a figure with a slider, of what the page's code has under that name.

    It has ``alpha`` and, for each budget, the least expected excess over it and the action played for that.
    """

    required_arguments = 1

    def run(self):
        """Return a place for the figure, with its data; ``_static/budgets.js`` draws it."""
        told = Page.of(self.env).names[self.arguments[0]]
        content = html.escape(json.dumps(told))
        text = f'<div class="budgets" data-content="{content}"></div>'
        return [nodes.raw("", text, format="html")]


def break_names(app, page, template, context, doctree):
    """Let long names break after a dot or an underscore, nowhere else."""
    for pattern in (NAME, TITLE):
        context["body"] = pattern.sub(lambda m: m[1] + breakable(m[2]) + m[3], context.get("body", ""))
    for side in ("prev", "next"):
        if context.get(side):
            context[side]["title"] = breakable(context[side]["title"])


def breakable(name):
    """Return a name with the places where a line may end."""
    return re.sub(r"(?<=\w)([._]+)(?=\w)", r"\1<wbr>", name)


def setup(app):
    """Tell Sphinx."""
    app.add_directive("budgets", Budgets)
    app.connect("html-page-context", break_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
