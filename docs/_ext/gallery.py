"""A gallery: cards with the thumbnails that other pages draw as they run."""

import html
import shutil
from pathlib import Path

from docutils import nodes
from pictures import THEMES
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

LOG = logging.getLogger(__name__)


class gallery(nodes.General, nodes.Element):
    """Cards, until all pages are read and their titles known."""


class Gallery(SphinxDirective):
    """``{gallery}``: a line ``PAGE: WORDS`` for each card, the page's thumbnail with its title and the words."""

    has_content = True

    def run(self):
        """Keep the lines."""
        cards = [line.partition(": ")[::2] for line in self.content]
        return [gallery("", cards=cards, location=self.get_location())]


def hang(app, doctree, docname):
    """Replace the cards by HTML: every page is read now."""
    for node in doctree.findall(gallery):
        node.replace_self(nodes.raw("", "\n".join(shown(app, docname, node)), format="html"))


def shown(app, docname, node):
    """Yield the HTML of the cards."""
    there = Path(app.outdir, app.builder.imagedir)
    there.mkdir(parents=True, exist_ok=True)
    folder = relative_uri(app.builder.get_target_uri(docname), app.builder.imagedir)
    yield '<div class="gallery">'
    for page, words in node["cards"]:
        pictures = sorted(Path(app.srcdir, "_build", "pictures").glob(f"{page}-*.svg"))
        small = [path for theme in THEMES for path in pictures if path.name == f"{page}-thumbnail-{theme}.svg"]
        if pictures and not small:  # a page that draws nothing lacks a library here, and says so
            LOG.warning("page %s has no thumbnail", page, location=node["location"])
        for path in small:
            shutil.copy(path, there)
        image = "".join(
            f'<img class="only-{theme}" src="{folder}/{path.name}" alt="" loading="lazy">'
            for theme, path in zip(THEMES, small, strict=False)
        )
        title, address = html.escape(app.env.titles[page].astext()), app.builder.get_relative_uri(docname, page)
        yield f'<a href="{address}"><span class="thumbnail">{image}</span><b>{title}</b><i>{html.escape(words)}</i></a>'
    yield "</div>"


def setup(app):
    """Tell Sphinx."""
    app.add_node(gallery)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", hang)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
