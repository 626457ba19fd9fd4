"""Prudent's own model files."""
