"""Which layers of two networks hold the same representation?"""
