"""Environments: models from them, models as them, plans that act in them."""
