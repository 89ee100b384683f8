"""Reizinger et al. 2025: cross-entropy and DIET."""
