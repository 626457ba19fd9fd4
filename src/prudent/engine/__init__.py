"""Whole levels, no names, no user's units: the prepared model, its values, and the sweep over budgets."""
