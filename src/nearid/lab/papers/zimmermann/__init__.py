"""Zimmermann et al. 2021: contrastive learning."""
