"""The ladder of equivalence: signed permutation < rigid < linear."""
