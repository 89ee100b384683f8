"""Input: arrays, tensors and files, opened safely as rows of numbers that are read block by block."""

from nearid.arrays.columns import open_columns
from nearid.arrays.open import open_rows
from nearid.arrays.pair import Pair, Single, pair_rows
from nearid.arrays.rows import Rows, first_nonfinite, nonfinite
from nearid.arrays.tables import Columns

__all__ = [
    "Columns",
    "Pair",
    "Rows",
    "Single",
    "first_nonfinite",
    "nonfinite",
    "open_columns",
    "open_rows",
    "pair_rows",
]
