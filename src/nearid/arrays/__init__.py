"""What comes in: arrays, tensors and files opened as rows of numbers, safely and out of core."""

from nearid.arrays.open import open_rows
from nearid.arrays.pair import Pair, Single, pair_rows
from nearid.arrays.rows import Rows, first_nonfinite, nonfinite

__all__ = ["Pair", "Rows", "Single", "first_nonfinite", "nonfinite", "open_rows", "pair_rows"]
