"""Conditions of the theorems on heads, class vectors and decoders, and the transforms and bounds that follow."""
