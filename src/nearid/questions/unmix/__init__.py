"""Remove the remaining ambiguity: whitening and ICA of files of any size."""
