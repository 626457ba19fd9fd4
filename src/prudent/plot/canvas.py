"""What all pictures share: axes that pyplot does not know, colours, and files written whole or not at all.

Colours are Okabe and Ito's, in an order in which neighbours differ in lightness; ordered values are shown in cividis,
without its darkest part.  An SVG also suits a dark page: ``DARK`` maps the colours of a light page to those of a dark
one.
"""

import io
import re
from collections.abc import Container, Hashable, Sequence
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from prudent.errors import PrudentError, needed, printable
from prudent.models.ssp import SSP
from prudent.results.map_data import is_number
from prudent.runtime.atomic_files import check_place, write_bytes
from prudent.runtime.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is imported when something is drawn

BLUE, ORANGE, BLACK, PURPLE, GREEN, SKY = "#0072B2", "#E69F00", "#000000", "#CC79A7", "#009E73", "#56B4E9"
SERIES = (BLUE, ORANGE, BLACK, PURPLE, GREEN, SKY)
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("////", "\\\\\\\\", "xxxx", "....", "++++", "oooo")
BODY, TAIL, INK, FAINT, PALE = SKY, "#D55E00", "#222222", "#B8B8B8", "#F1F3F5"
PAPER, ROAD, SEA = "#FFFFFF", "#D9D9D9", "#E3F0FA"
ON_DARK, ON_LIGHT = "#FDFDFD", "#111111"
"""Text on a coloured area, which a dark page leaves as it is."""

DARKEST = 0.22
"""Where ordered colours begin along cividis: darker ones are hard to see on a dark page."""

NAMED = 12
"""The most entries of a legend."""

FADED = 0.3
"""How opaque an action is where no run of the plan plays it."""

DARK = {
    PAPER: "#14181E",
    BLACK: "#EEF1F5",
    INK: "#E1E6EC",
    FAINT: "#6B7684",
    PALE: "#222A33",
    ROAD: "#3A444F",
    SEA: "#1B2B3B",
    BLUE: "#4CA6E8",
}
"""The colours of a dark page that replace those of a light one; all others suit both."""

Theme = Literal["both", "light", "dark"]

DPI = 150
LEFT_OUT = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""The kinds of files, each with the metadata left out, so that the same picture is the same file."""

FILLS = (
    "#2F7FBF", "#F4C95D", "#159A78", "#F08A5D", "#8464B4", "#8FD3F4", "#C8553D", "#B5C99A", "#A45C86", "#9AA5B1",
)  # fmt: skip
"""Colours of actions with names: the first ones differ in lightness, and all of them suit light and dark pages."""


def part(name: str) -> Any:
    """Return a module of matplotlib, or say what to install."""
    return needed(f"matplotlib.{name}", "plot")


def axes_for(ax: "Axes | None", size: tuple[float, float] = (6.4, 4.0)) -> "Axes":
    """Return the axes to draw on: those given, or new ones on a figure that a notebook displays without pyplot."""
    kind: type[Any] = part("axes").Axes
    if ax is None:
        figure = part("figure").Figure(figsize=size, layout="constrained")
        new: Any = figure.add_subplot()
        figure._repr_png_ = new._repr_png_ = partial(png, figure)
        found: Axes = new
        return found
    if not issubclass(type(ax), kind):
        raise PrudentError(f"ax is a {type(ax).__name__}; pass matplotlib axes, or leave ax out for a new figure")
    return ax


def check_kind(name: str, value: object, kind: type, source: str) -> None:
    """Refuse an argument that is not what a verb returned."""
    if not isinstance(value, kind):
        raise PrudentError(f"{name} is a {type(value).__name__}; give what prudent.{source} returned")


def name_above(ax: "Axes", handles: Sequence[Any], **how: Any) -> int:
    """Put a legend above the picture, from its left end on, in as many columns as fit; return how many rows it has."""
    room, widest = ax.bbox.width * 72 / ax.figure.dpi, max(len(each.get_label()) for each in handles)
    columns = max(1, min(len(handles), int(room / (6 * widest + 36))))  # in points, about
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "ncols": columns}
    ax.legend(handles=list(handles), frameon=False, fontsize=9, **(place | how))
    return -(-len(handles) // columns)


def keys(model: SSP, actions: Container[Hashable], most: int = 24) -> list[Any]:
    """Return the entries of a legend for some actions of a model."""
    Patch = part("patches").Patch
    shown = [(action, colour) for action, colour in colours_of(model).items() if action in actions]
    return [Patch(facecolor=colour, label=name_of(action, most)) for action, colour in shown]


def entitle(ax: "Axes", text: str) -> None:
    """Put a line of text above the picture, from its left end on."""
    ax.set_title(text, fontsize=9.5, loc="left")


def name_axes(ax: "Axes", x: str, y: str) -> None:
    """Name the axes, and hide the top and the right line of their frame."""
    ax.set(xlabel=x, ylabel=y)
    ax.spines[["top", "right"]].set_visible(False)


def hues(n: int, first: Sequence[str] = SERIES) -> list[str]:
    """Return the first n of some colours that differ in lightness; if there are too few, n colours along cividis."""
    return list(first[:n]) if n <= len(first) else [ordered(i / (n - 1)) for i in range(n)]


def ordered(share: float) -> str:
    """Return the colour of a share between 0 and 1 along cividis, from dark to light."""
    return str(part("colors").to_hex(scale()(share)))


@cache
def scale() -> Any:
    """Return the colour map of ordered values."""
    whole = needed("matplotlib", "plot").colormaps["cividis"]
    shades = [whole(DARKEST + (1 - DARKEST) * i / 255) for i in range(256)]
    return part("colors").ListedColormap(shades)


def light(colour: Any) -> float:
    """Return the relative luminance of a colour, 0 for black and 1 for white."""
    rgb: tuple[float, ...] = part("colors").to_rgb(colour)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink_on(colour: Any) -> str:
    """Return a text colour that is readable on another colour."""
    return ON_DARK if light(colour) < 0.3 else ON_LIGHT


def short(value: float) -> str:
    """Return a cost with two decimals, a whole one with none, and one that is nearly zero with three digits."""
    whole = abs(value) >= 1e5 or value % 1 == 0
    return f"{value:.3g}" if 0 < abs(value) < 0.1 else number(value, 0 if whole else 2)


def name_of(name: Hashable, most: int = 24) -> str:
    """Return the name of a state or an action for a picture: short, and never read as mathematics.

    A name that is too long loses its middle, since names differ more often at their ends.
    """
    text = printable(name)
    text = text if len(text) <= most else text[: most // 2] + "…" + text[most // 2 + 1 - most :]
    return text.replace("$", r"\$")


def in_order(names: Sequence[Hashable]) -> list[Hashable]:
    """Return names without repetition: numbers by size, others as they come."""
    once = list(dict.fromkeys(names))
    if all(is_number(name) for name in once):
        return sorted(once, key=float)  # type: ignore[arg-type]
    return once


def png(figure: Any) -> bytes:
    """Return a figure as a PNG file's content."""
    return _content(figure, ".png")


def svg(figure: Any, theme: Theme = "both") -> bytes:
    """Return a figure as an SVG file's content, for a light page, a dark one, or whichever the reader has."""
    content = _content(figure, ".svg").decode()
    dark = {light.lower(): dark.lower() for light, dark in DARK.items()}
    rules = f"svg {{ fill: {dark[BLACK]} }}"  # matplotlib leaves out the fill of what is black
    if theme == "dark":
        content = re.sub(r'(?<=ill: |oke: |ill=")#[0-9a-f]{6}', lambda found: dark.get(found[0], found[0]), content)
    elif theme == "both":
        changed = [(what, *pair) for what in ("fill", "stroke") for pair in dark.items()]
        swaps = "".join(f'[style*="{what}: {light}"] {{ {what}: {to} !important }}' for what, light, to in changed)
        swaps += "".join(f'[fill="{light}"] {{ fill: {to} }}' for light, to in dark.items())  # below a hatch
        rules = f"@media (prefers-color-scheme: dark) {{ {rules}{swaps} }}"
    if theme != "light":
        content = content.replace("</style>", f"{rules}</style>", 1)
    return content.encode()


def _content(figure: Any, suffix: str) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=suffix[1:], dpi=DPI, metadata=LEFT_OUT[suffix])
    if suffix != ".svg":
        return file.getvalue()
    number: dict[str, str] = {}  # matplotlib makes up names inside a file, others every time
    made_up = r'(id="|="#|l\(#)((?:[a-z]|image)[0-9a-f]{10})(?=["\)])'

    def named(found: re.Match[str]) -> str:
        return found[1] + number.setdefault(found[2], f"n{len(number)}")

    return re.sub(made_up, named, file.getvalue().decode()).encode()


def check_picture_path(path: str | PathLike[str]) -> None:
    """Refuse a path that is not a picture's, or a missing matplotlib, before anything is computed."""
    if Path(path).suffix.lower() not in LEFT_OUT:
        raise PrudentError(f"{path}: pictures are written as {', '.join(LEFT_OUT)}")
    check_place(path, Path(path).suffix, "pictures are written")
    part("figure")


def save(ax: "Axes", path: str | PathLike[str], *, theme: Theme = "both") -> None:
    """Write the figure of some axes as PNG, SVG or PDF, whole or not at all.

    Parameters
    ----------
    ax : Axes
        What a function of this module returned, or any other axes.
    path : str or path
        The file to write; its suffix selects the format.
    theme : {"both", "light", "dark"}
        The colours of an SVG: by default light colours, and dark ones if the reader's browser asks for them.
        Other formats have light colours.

    Examples
    --------
    >>> import pathlib, tempfile, prudent
    >>> plan = prudent.solve(prudent.domains.figure_2(), alpha=0.1)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "strip.svg")
    >>> prudent.plot.save(prudent.plot.budget_strip(plan), path)
    >>> "prefers-color-scheme: dark" in path.read_text()
    True
    """
    check_picture_path(path)
    if theme not in ("both", "light", "dark"):
        raise PrudentError(f"theme is {theme!r}; it must be both, light or dark")
    suffix = Path(path).suffix.lower()
    if suffix != ".svg" and theme == "dark":
        raise PrudentError(f"theme is {theme!r}, but {path} has light colours; write an .svg, or leave theme out")
    write_bytes(Path(path), svg(ax.figure, theme) if suffix == ".svg" else _content(ax.figure, suffix))


def colours_of(model: SSP) -> dict[Hashable, str]:
    """Return the colour of each action of a model: of numbers by size, then of names in the model's order.

    Numbers lie along cividis.  Names have colours of their own; where there are too many of them, they lie along
    cividis, too.
    """
    found = list(dict.fromkeys(model.names[1]))
    numbers = in_order([action for action in found if is_number(action)])
    names = [action for action in found if not is_number(action)]
    size = [float(number) for number in numbers]  # type: ignore[arg-type]
    low, wide = (size[0], size[-1] - size[0] or 1.0) if size else (0.0, 1.0)
    along = [ordered((each - low) / wide) for each in size]
    return dict(zip([*numbers, *names], [*along, *hues(len(names), FILLS)], strict=True))
