"""Autoencoders: objectives, and the networks for their encoders and decoders."""
