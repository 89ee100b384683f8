"""Real data sets in their canonical files: images, and the factors that made them."""
