"""The sweep over rising budgets."""
