"""SSP, the one model every other part knows, and how to make one."""
