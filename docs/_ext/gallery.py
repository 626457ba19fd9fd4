"""A gallery: cards with pictures that other pages draw as they run."""

import html

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

LOG = logging.getLogger(__name__)


class gallery(nodes.General, nodes.Element):
    """Cards, until all pages are read and their pictures known."""


class Gallery(SphinxDirective):
    """``{gallery}``: a line ``PAGE NUMBER: WORDS`` for each card, the page's picture of that number with the words."""

    has_content = True

    def run(self):
        """Keep the lines."""
        cards = []
        for line in self.content:
            place, _, words = line.partition(": ")
            page, _, number = place.partition(" ")
            cards.append((page, number, words))
        return [gallery("", cards=cards, location=self.get_location())]


def hang(app, doctree, docname):
    """Replace the cards by HTML: every page is read now."""
    for node in doctree.findall(gallery):
        node.replace_self(nodes.raw("", "\n".join(shown(app, docname, node)), format="html"))


def shown(app, docname, node):
    """Yield the HTML of the cards."""
    yield '<div class="gallery">'
    for page, number, words in node["cards"]:
        picture = app.env.images.get(f"_build/pictures/{page}-{number}.png")
        drawn = any(uri.startswith(f"_build/pictures/{page}-") for uri in app.env.images)
        if picture is None and drawn:  # a page that draws nothing lacks a library here, and says so
            LOG.warning("page %s has no picture %s", page, number, location=node["location"])
        title = html.escape(app.env.titles[page].astext())
        image = f'<img src="_images/{picture[1]}" alt="">' if picture is not None else ""
        address = app.builder.get_relative_uri(docname, page)
        yield f'<a href="{address}">{image}<b>{title}</b><span>{html.escape(words)}</span></a>'
    yield "</div>"


def setup(app):
    """Tell Sphinx."""
    app.add_node(gallery)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", hang)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
