"""Data generating processes with known latents: spaces, samplers, classes and invertible mixings."""
