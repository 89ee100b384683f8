from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.damage import damage_told
from nearid.base.errors import InputError


@pytest.mark.filterwarnings("ignore")
def test_changed_bytes_give_rows_or_a_sentence(written: Path) -> None:
    target = written
    if written.is_dir():
        target = next(file for file in written.rglob("*") if file.name in ("zarr.json", ".zarray"))
    content, random = target.read_bytes(), np.random.default_rng(0)
    for _ in range(100):
        changed = bytearray(content)
        changed[random.integers(len(content))] = random.integers(256)
        target.write_bytes(changed)
        try:
            rows = open_rows(written)
            rows.read(0, min(rows.shape[0], 50))
        except InputError as error:
            assert str(error).endswith((".", "?", ")"))


def test_what_passes_through() -> None:
    message = r"^x is not a whole file: 'gone'\. Write or copy it again\.$"
    with pytest.raises(InputError, match=message), damage_told("x", "file"):
        raise KeyError("gone")
    for passed in (InputError("said before"), MemoryError(), ImportError()):
        with pytest.raises(type(passed)) as caught, damage_told("x", "file"):
            raise passed
        assert caught.value is passed
