"""Are these runs the same representation? Up to which group, and how closely?"""
