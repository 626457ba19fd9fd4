"""Policies, their exact evaluation, and simulation."""
