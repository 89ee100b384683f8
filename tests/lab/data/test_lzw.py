import shutil
import subprocess

import pytest
from hypothesis import given, strategies as st

from canonical_files import compress
from nearid.base.errors import InputError
from nearid.lab.data.lzw import decompress


@given(
    st.one_of(
        st.binary(max_size=3000),
        st.lists(st.sampled_from([b"ab", b"a", b"abcabc", b"\0\0"]), max_size=2000).map(b"".join),
    ),
    st.sampled_from([9, 10, 12, 16]),
    st.sampled_from([None, 50, 700]),
)
def test_what_was_compressed_comes_back(data, widest, clear_every):
    assert decompress(compress(data, widest, clear_every), "x", len(data)) == data


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip, which also reads .Z, is not here")
@pytest.mark.parametrize("widest, clear_every", [(16, None), (12, None), (16, 3000)])
def test_gzip_agrees(rng, widest, clear_every):
    # Long enough that the codes reach 16 bits and the table is full.
    data = rng.integers(0, 60, 250_000, dtype="u1").tobytes()
    packed = compress(data, widest, clear_every)
    assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == data
    assert decompress(packed, "x", len(data)) == data


@pytest.mark.parametrize(
    "data, message",
    [
        (b"\x1f\x8b\x90", "not a .Z file"),
        (b"\x1f\x9d", "not a .Z file"),
        (b"\x1f\x9d\x9f\0\0", "31 bits"),
        (b"\x1f\x9d\x90\xff\xff\xff", "damaged"),
        (compress(bytes(100_000)), "more than 99999"),
    ],
)
def test_damage_and_bombs_are_told(data, message):
    with pytest.raises(InputError, match=message):
        decompress(data, "x", 99_999)
