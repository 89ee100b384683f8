"""Readers of real data sets: images with their true factors, texts, profiles and weights."""
