"""Whitening and ICA: what is left of an ambiguity, removed."""
