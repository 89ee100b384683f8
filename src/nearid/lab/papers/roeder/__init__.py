"""Roeder et al. 2021: linear identifiability."""
