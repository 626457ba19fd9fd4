"""The ways to plan: one file each, its formula, its stopping rule and its guarantee at the top."""
