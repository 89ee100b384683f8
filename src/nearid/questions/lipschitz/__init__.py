"""How far is a decoder from an isometry?"""
