"""Nelson et al. 2026: near-identifiability, and ICA."""
