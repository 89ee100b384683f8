"""Autoencoders: objectives, and the networks that they are made of."""
