"""The prepared model, its values and the sweep over budgets; all in whole levels, without names or user's units."""
