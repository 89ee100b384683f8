"""Numbers from two arrays: similarity, recovery, disentanglement, neighbourhoods."""
