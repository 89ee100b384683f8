"""Which layers of two models correspond? Answered from the models and inputs alone."""
