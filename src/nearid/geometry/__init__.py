"""What the theorems ask of heads, class vectors and decoders, and the transforms and bounds that follow from it."""
