"""The reference: the command's help as it is printed, and the fields of results from the comments beside them."""

import ast
import dataclasses
import importlib
import inspect
import io
import tokenize

from click.testing import CliRunner
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

WIDTH = 88  # what a page shows without wrapping


class Commands(SphinxDirective):
    """``{commands}``: the help of every verb, word for word."""

    def run(self):
        """Return a section for each verb."""
        from prudent.apps.cli.main import main

        return [self.section(main), *(self.section(main, name) for name in sorted(main.commands))]

    def section(self, main, *verb):
        """Return a heading and a help text."""
        title = " ".join(["prudent", *verb])
        help_text = CliRunner().invoke(main, [*verb, "--help"], prog_name="prudent", terminal_width=WIDTH).output
        block = nodes.literal_block(help_text, help_text, classes=["cell-output"])
        block["language"] = "text"
        section = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title)])
        section += [nodes.title(title, title), block]
        self.state.document.note_explicit_target(section)
        return section


def fields_of(kind):
    """Return (name, type, comment) of the public fields of a dataclass or a named tuple."""
    source = inspect.getsource(kind)
    comment = {
        token.start[0]: token.string.lstrip("#: ").replace("|", r"\|")  # no substitutions are meant
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (body,) = ast.parse(source).body
    for line in body.body:
        if isinstance(line, ast.AnnAssign) and not line.target.id.startswith("_"):
            yield line.target.id, ast.unparse(line.annotation).strip("'\""), comment.get(line.end_lineno, "")


def add_fields(app, what, name, obj, options, lines):
    """Add the fields of a dataclass or a named tuple to its docstring, as numpydoc writes them."""
    if what != "class" or "Attributes" in lines:
        return
    kinds = [kind for kind in reversed(obj.__mro__) if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")]
    listed = [field for kind in kinds for field in fields_of(kind)]
    if listed:
        text = ["", "Attributes", "----------"]
        for field, kind, comment in listed:
            text += [f"{field} : {kind}", f"    {comment}"]
        at = next((i for i, line in enumerate(lines) if line.strip() in ("Examples", "Notes")), len(lines))
        lines[at:at] = [*text, ""]


def skip_internal(app, what, name, member, skip, options):
    """Leave out what is public for other modules alone, as its docstring's first line says, and a tuple's fields."""
    first = (inspect.getdoc(member) or "").partition("\n")[0]
    return skip or "(internal)." in first or first.startswith("Alias for field number")


def setup(app):
    """Tell Sphinx."""
    importlib.import_module("prudent")
    app.add_directive("commands", Commands)
    app.connect("autodoc-process-docstring", add_fields, priority=100)  # before numpydoc reads it
    app.connect("autodoc-skip-member", skip_internal)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
