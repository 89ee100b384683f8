"""A pickle is read as data: whatever would run is refused."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nearid.base.errors import InputError
from nearid.lab.data.array_pickle import read_arrays


def written(tmp_path, held, protocol=4):
    path = tmp_path / "x.pickle"
    path.write_bytes(held if isinstance(held, bytes) else pickle.dumps(held, protocol=protocol))
    return path


@given(
    held=st.sampled_from(["?", "u1", "i4", ">f4", "f8", "i8"]).flatmap(
        lambda kind: arrays(np.dtype(kind), array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
    ),
    protocol=st.sampled_from([3, 4]),
    fortran=st.booleans(),
)
def test_arrays_come_back_as_numpy_itself_reads_them(tmp_path_factory, held, protocol, fortran):
    held = np.asfortranarray(held) if fortran else held
    back = read_arrays(written(tmp_path_factory.mktemp("p"), {"a": [held, 3, "x"]}, protocol))
    assert back["a"][1:] == [3, "x"]
    assert back["a"][0].dtype == held.dtype
    np.testing.assert_array_equal(back["a"][0], held)


class Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "held, message",
    [
        (Call(os.system, "touch broken"), "system"),
        (Call(eval, "open('broken', 'w')"), "eval"),
        (Call(getattr, "text", "upper"), "getattr"),
        ({"a": np.array([{}], dtype=object)}, "an array that does not hold numbers"),
        (np.datetime64("2020-01-01"), "scalar"),
        (np.array(["text"]), "an array that does not hold numbers"),
        (np.zeros(2, "c16"), "an array that does not hold numbers"),
        ({1, 2}, "something other than arrays"),
    ],
)
def test_everything_else_is_refused(tmp_path, monkeypatch, held, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        read_arrays(written(tmp_path, held))
    assert not (tmp_path / "broken").exists()


def shared(depth):
    """Lists of the same list twice, and so on: 2**depth items in some bytes."""
    held = [1]
    for _ in range(depth):
        held = [held, held]
    return held


def test_shared_lists_do_not_grow(tmp_path, monkeypatch):
    assert read_arrays(written(tmp_path, shared(3))) == shared(3)
    endless = []
    endless.append(endless)
    for held in (shared(60), endless, {"a": shared(60)}):
        with pytest.raises(InputError, match="more than 8 nested lists"):
            read_arrays(written(tmp_path, held))
    monkeypatch.setattr("nearid.lab.data.array_pickle.MOST", 100)
    wide = [0] * 9
    with pytest.raises(InputError, match="more than 100 items"):
        read_arrays(written(tmp_path, [wide] * 11))


def test_nothing_is_made_text(tmp_path):
    # A dtype whose code, and an array whose shape, is a list that no text can hold.
    with pytest.raises(InputError, match="something other than arrays"):
        read_arrays(written(tmp_path, Call(np.dtype, shared(60))))
    made, arguments, _ = np.zeros(2).__reduce__()
    odd = Call(made, *arguments)
    odd.call += ((1, shared(60), np.dtype("u1"), False, b""),)
    with pytest.raises(InputError, match="shape is not made of whole numbers"):
        read_arrays(written(tmp_path, odd))
    with pytest.raises(InputError, match="keys are not strings"):
        read_arrays(written(tmp_path, {(1, 2): 3}))


def test_lies_and_damage_are_told(tmp_path):
    good = pickle.dumps(np.arange(6, dtype=np.uint8), protocol=4)
    with pytest.raises(InputError, match="not a whole pickle"):
        read_arrays(written(tmp_path, good[:-20]))
    with pytest.raises(InputError, match="not a whole pickle"):
        # A length of 2**60 bytes, of which there are three.
        read_arrays(written(tmp_path, b"\x80\x04\x8e" + (1 << 60).to_bytes(8, "little") + b"abc."))
    # The shape (6,) made (7,).
    at = good.index(b"K\x06\x85")
    with pytest.raises(InputError, match="holds 6 bytes"):
        read_arrays(written(tmp_path, good[:at] + b"K\x07\x85" + good[at + 3 :]))
