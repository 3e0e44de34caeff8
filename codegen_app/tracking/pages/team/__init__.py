"""The team page: alerts and series of one person, and budgets."""
