"""Pictures of pages as SVG, for light and for dark pages, and thumbnails drawn at their own size."""

from docutils import nodes

from prudent.plot import canvas

THEMES = ("light", "dark")
LARGEST = 300_000  # bytes: a page with a few pictures loads at once
SMALL = (3.2, 2.0)  # inches of a thumbnail


def keep(figure, folder, name):
    """Write a figure for both themes."""
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    for theme in THEMES:
        content = canvas.svg(figure, theme)
        if len(content) > LARGEST:
            raise ValueError(f"the picture has {len(content):,} bytes, more than {LARGEST:,}; draw fewer shapes")
        (folder / f"{name}-{theme}.svg").write_bytes(content)


def images(figure, name, words):
    """Yield the images of a figure that was kept, of which a page shows the one that suits its theme."""
    for theme in THEMES:
        yield nodes.image(
            uri=f"/_build/pictures/{name}-{theme}.svg",
            alt=words,
            width=f"{figure.get_figwidth() * 96:.0f}px",
            loading="lazy",
            classes=["cell-picture", f"only-{theme}"],
        )


def shrink(figure):
    """Make a figure a thumbnail: drawn anew at its size, without words that nobody could read there."""
    ax = figure.axes[0]
    for each in (*ax.collections, *ax.images):
        if each.colorbar is not None:
            each.colorbar.remove()
    for each in (*ax.texts, *([ax.get_legend()] if ax.get_legend() else [])):
        each.remove()
    for side in ("left", "center"):
        ax.set_title("", loc=side)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    ax.set_aspect("auto")
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    figure.set_size_inches(SMALL)
