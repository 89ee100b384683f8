"""Hidden states of torch modules and transformers models, taken batch by batch and written as rows of numbers."""
