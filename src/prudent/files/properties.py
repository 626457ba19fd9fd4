"""Which costs and which goals are meant, in the words of PRISM and Storm: ``R{"cost"}min=? [F "goal"]``."""

import re

from prudent.errors import PrudentError

__all__ = ["reward_property"]

SHAPE = re.compile(r'\s*R\s*(?:\{\s*"([^"]+)"\s*\})?\s*(?:min)?\s*=\s*\?\s*\[\s*F\s*"([^"]+)"\s*\]\s*')


def reward_property(text: str) -> tuple[str | None, str]:
    """Return the reward structure that a property names, or None, and the label of its goals.

    Examples
    --------
    >>> reward_property('R{"time"}min=? [F "done"]')
    ('time', 'done')
    >>> reward_property('Rmin=? [F "done"]')
    (None, 'done')
    """
    found = SHAPE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise PrudentError(
            f'property is {text!r}; it must have the shape R{{"cost"}}min=? [F "goal"], with the reward structure '
            'that is the cost, and the label of the goals; Rmin=? [F "goal"] where there is only one'
        )
    return found[1], found[2]
