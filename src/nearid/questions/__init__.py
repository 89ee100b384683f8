"""One room for each question that a user asks."""
