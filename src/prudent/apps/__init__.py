"""What people start: the command, the live page, the paper's report."""
