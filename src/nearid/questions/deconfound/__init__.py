"""Biology out of batch effects: do components of an embedding carry a perturbation over to batches never seen?"""
