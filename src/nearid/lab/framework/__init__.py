"""Experiments, their claims, cells and runs."""
