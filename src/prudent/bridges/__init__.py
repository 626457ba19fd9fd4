"""Models from where people keep them: Gymnasium, arrays of other packages, graphs; and plans that act there."""
