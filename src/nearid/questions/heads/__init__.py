"""Do the heads of two models predict the map between their features?"""
