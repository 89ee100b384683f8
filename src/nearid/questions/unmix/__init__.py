"""Remove what ambiguity is left: whitening and ICA of files of any size."""
