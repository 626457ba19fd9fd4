"""What surrounds the planning: limits, progress, optional libraries, files written whole, tables."""
