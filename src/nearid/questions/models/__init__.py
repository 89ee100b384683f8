"""Which depth of one model corresponds to which of another, from the models and inputs alone?"""
