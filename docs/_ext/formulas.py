"""Formulas as MathML, which browsers draw themselves: nothing is fetched when a page is read."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(writer, node):
    """Write a formula within a sentence."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block(writer, node):
    """Write a formula on its own."""
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
