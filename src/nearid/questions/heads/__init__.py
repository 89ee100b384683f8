"""Does the map between two representations follow from their heads?"""
