"""What comes in: arrays, tensors and files opened as rows of numbers, safely and out of core."""

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
