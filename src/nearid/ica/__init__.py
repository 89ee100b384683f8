"""Whitening and ICA, which remove a linear ambiguity up to permutation, sign and scale of the components."""
