"""Biology or batch: do components of an embedding show a perturbation in batches that were held out?"""
