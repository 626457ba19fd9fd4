"""What a solve returns, and what can be asked of it."""
