"""What the theorems ask of heads and class vectors, and the transforms that follow from it."""
