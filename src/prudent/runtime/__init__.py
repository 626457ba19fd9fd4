"""Services for all packages: limits, progress, optional libraries, atomic files, tables."""
