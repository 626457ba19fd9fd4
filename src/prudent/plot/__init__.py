"""Pictures of results, with matplotlib (extra ``plot``): each function takes results and returns the axes it drew on.

Without ``ax=`` each makes a new figure that pyplot does not know, so no global state is touched.  A notebook displays
the axes; a script saves the picture with ``prudent.plot.save(ax, "tails.svg")``.  For a window, or for several pictures
in one figure, pass axes of your own::

    figure, axes = matplotlib.pyplot.subplots(1, 2)
    prudent.plot.distribution(plan, ax=axes[0])
    prudent.plot.curve(curve, ax=axes[1])
    matplotlib.pyplot.show()

Colours are safe for the colour-blind, and colour is never the only sign: line styles, hatches, numbers and names read
in black and white too.  An action has the same colour in all pictures of its model.  SVG files suit dark pages too.
"""

from prudent.plot.canvas import save
from prudent.plot.curves import curve, frontier, stress, study
from prudent.plot.grid import grid, heat_map
from prudent.plot.maps import policy, sea_map
from prudent.plot.network import routes
from prudent.plot.strips import budget_strip
from prudent.plot.tails import cdf, distribution

__all__ = [
    "budget_strip",
    "cdf",
    "curve",
    "distribution",
    "frontier",
    "grid",
    "heat_map",
    "policy",
    "routes",
    "save",
    "sea_map",
    "stress",
    "study",
]
