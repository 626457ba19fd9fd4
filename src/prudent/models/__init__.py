"""SSP, the model that all other packages use, and ways to make one."""
