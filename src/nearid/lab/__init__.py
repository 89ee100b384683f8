"""The papers: experiments with published values, and the data, models and processes that they need."""
