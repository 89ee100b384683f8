"""Encoders, objectives whose minimisers are known, and one trainer (torch)."""
