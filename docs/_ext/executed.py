"""Pages that run: code, commands and numbers are executed when the page is built.

``{run}`` runs Python in the page's own namespace and shows what it prints and the value, or the picture, of its last
line.  ``{shell}`` runs commands and shows their output.  ``{example}`` does with a script of ``examples/`` what
``{run}`` does with its own lines, and puts other files from there beside the page's code; all can be downloaded.
``{value}`` puts a number into a sentence.  All of a page work in one scratch folder.

What a block shows must be checked: ``:check:`` is a Python expression that knows the page's names and ``out``, the text
that was printed.  Readers paste what they see, so code that is shown may use only names that were shown; ``:fold:``
shows code on a click, ``:hide:`` not at all.  ``:thumbnail:`` makes a picture the page's own in a gallery: that of the
block, or of an expression that is drawn for it.  A check that fails, an error, output without a check, or a name from
nowhere is a warning, and ``make docs`` takes none.
"""

import ast
import builtins
import contextlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import symtable
import sys
import traceback
import warnings
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from pictures import images, keep, shrink
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
WIDTH = 96  # columns of code that a page shows without scrolling


class Page:
    """The names, the folder and the pictures of one page."""

    def __init__(self, env):
        self.name, self.shown = env.docname, 0
        self.names = {"__name__": "page", "missing": missing}
        self.seen = set(dir(builtins))  # the names that readers have
        self.folder = Path(env.doctreedir) / "scratch" / self.name
        self.pictures = Path(env.srcdir) / "_build" / "pictures"
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in (self.folder, self.pictures):
            folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def of(env):
        """Return the page being read."""
        found = env.temp_data.get("executed")
        if found is None or found.name != env.docname:
            found = env.temp_data["executed"] = Page(env)
        return found

    def run(self, code, where):
        """Run code; return what it printed and the value of its last line."""
        tree = ast.parse(code, where)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        out, value = io.StringIO(), None
        with contextlib.redirect_stdout(out), contextlib.chdir(self.folder), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(tree, where, "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), where, "eval"), self.names)
        return out.getvalue(), value

    def unseen(self, code):
        """Return the names that shown code takes and readers do not have; they have its own from now on."""
        tables, taken = [symtable.symtable(code, self.name, "exec")], set()
        made = {name.get_name() for name in tables[0].get_symbols() if name.is_assigned() or name.is_imported()}
        self.seen |= made
        while tables:
            table = tables.pop()
            taken |= {name.get_name() for name in table.get_symbols() if name.is_referenced() and name.is_global()}
            tables += table.get_children()
        return sorted(taken - self.seen)

    def keep(self, figure, words):
        """Keep a figure; return its images."""
        self.shown += 1
        name = f"{self.name.replace('/', '-')}-{self.shown}"
        keep(figure, self.pictures, name)
        return list(images(figure, name, words))

    def keep_thumbnail(self, expression, figure):
        """Keep a small picture: of an expression or, without one, of a figure that is not needed any more."""
        if expression:
            figure = self.run(expression, "thumbnail")[1].figure
        shrink(figure)
        keep(figure, self.pictures, f"{self.name}-thumbnail")


def missing(module):
    """Return whether a library is not installed: pages say so and go on."""
    return importlib.util.find_spec(module) is None


class Cell(SphinxDirective):
    """What all blocks share: showing, and checking what is shown."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "check": directives.unchanged,
        "fold": directives.unchanged,
        "hide": directives.flag,
        "raises": directives.unchanged,
        "alt": directives.unchanged,
        "thumbnail": directives.unchanged,
        "when": directives.unchanged,
    }

    def run(self):
        """Run the block and return its nodes."""
        page = Page.of(self.env)
        if "when" in self.options and not eval(self.options["when"], page.names):
            return []
        cell = nodes.container(classes=["cell"])
        try:
            with contextlib.chdir(page.folder):
                source, language, out, value = self.work(page)
        except Exception as error:
            if self.options.get("raises") not in [kind.__name__ for kind in type(error).__mro__]:
                return self.refuse(traceback.format_exc(limit=-3))
            source, language = "\n".join(self.content), "python"
            out, value = f"{type(error).__name__}: {error}\n", None
        if "hide" not in self.options and source:
            if language == "python" and (unseen := page.unseen(source)):
                return self.refuse(f"uses {', '.join(unseen)}, which no code shown above makes")
            if language == "python" and (long := [line for line in source.splitlines() if len(line) > WIDTH]):
                return self.refuse(f"has lines of more than {WIDTH} columns:\n" + "\n".join(long))
            cell += self.before(page)
            cell += literal(source, language, "cell-source")
            if "fold" in self.options:
                cell.insert(0, raw(f"<details><summary>{self.options['fold']}</summary>"))
                cell += raw("</details>")
        figure = getattr(value, "figure", None)
        figure = figure if hasattr(figure, "savefig") else None
        if value is not None and figure is None:
            out += f"{value if hasattr(value, 'table') and hasattr(value, '__rich_console__') else repr(value)}\n"
        if out.strip():
            cell += literal(out.rstrip("\n"), "text", "cell-output")
            if "raises" in self.options:
                cell["classes"].append("cell-said")
        if (out.strip() or figure is not None) and "check" not in self.options:
            return self.refuse("shows something that no :check: looks at")
        if "check" in self.options:
            known = {**page.names, "out": out, "value": value, "ax": value}
            try:
                if not eval(self.options["check"], known):
                    return self.refuse(f"check failed: {self.options['check']}\nwhat was shown:\n{out}")
            except Exception:
                return self.refuse(f"check broke: {self.options['check']}\n{traceback.format_exc(limit=-1)}")
        if figure is not None and "alt" not in self.options:
            return self.refuse("a picture needs :alt:, what it shows in words")
        try:
            if figure is not None:
                cell += page.keep(figure, self.options["alt"])
            if "thumbnail" in self.options:
                page.keep_thumbnail(self.options["thumbnail"], figure)
        except Exception:
            return self.refuse(traceback.format_exc(limit=-1))
        return [cell] if len(cell) else []

    def before(self, page):
        """Return what stands above the block."""
        return []

    def refuse(self, why):
        """Make it a warning, which ends the build."""
        LOG.warning("%s", why, location=self.get_location())
        return []


class Run(Cell):
    """``{run}``: Python."""

    def work(self, page):
        """Run the code."""
        code = "\n".join(self.content)
        out, value = page.run(code, f"{page.name}:{self.lineno}")
        return code, "python", out, value


class Shell(Cell):
    """``{shell}``: commands, one to a line."""

    def work(self, page):
        """Run the commands; messages on stderr are shown with the rest."""
        shown = []
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        for line in re.split(r"(?<!\\)\n", "\n".join(self.content)):
            done = subprocess.run(
                ["bash", "-c", line],
                env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
            )
            if done.returncode != int(self.options.get("raises", 0)):
                raise RuntimeError(f"{line}\nended with {done.returncode}:\n{done.stdout}")
            shown.append(f"$ {line}\n{done.stdout}")
        return "", "", "".join(shown), None


class Example(Cell):
    """``{example} NAME``: a file of ``examples/``; a script with what it prints."""

    def work(self, page):
        """Run a script; another file is put where the page's code finds it."""
        path = ROOT / "examples" / self.arguments[0]
        self.env.note_dependency(str(path))
        source = path.read_text()
        if path.suffix == ".py":
            return source.rstrip("\n"), "python", *page.run(source, path.name)
        shutil.copy(path, path.name)
        return source.rstrip("\n"), "text", "", None

    def before(self, page):
        """Return the file's name, which downloads it."""
        name = self.arguments[0]
        there = os.path.relpath(ROOT / "examples" / name, self.env.srcdir)
        link = addnodes.download_reference(reftarget=f"/{there}", refdoc=page.name, classes=["cell-file"])
        link += nodes.literal(name, name)
        return [nodes.paragraph("", "", link)]


class Value(SphinxRole):
    """``{value}`plan.cvar:.2f```: an expression, formatted as in an f-string."""

    def run(self):
        """Return the number as text."""
        try:
            text = eval("f'''{" + self.text + "}'''", Page.of(self.env).names)
        except Exception as error:
            LOG.warning("value %s: %s", self.text, error, location=self.get_location())
            text = "?"
        return [nodes.inline(text, text, classes=["computed"])], []


def literal(text, language, style):
    """Return a block of code or of output."""
    block = nodes.literal_block(text, text, classes=[style])
    block["language"] = language
    return block


def raw(text):
    """Return HTML as it is."""
    return nodes.raw("", text, format="html")


def setup(app):
    """Tell Sphinx."""
    for name, kind in (("run", Run), ("shell", Shell), ("example", Example)):
        app.add_directive(name, kind)
    app.add_role("value", Value())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
