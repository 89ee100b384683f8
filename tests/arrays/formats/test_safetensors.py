import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError

torch = pytest.importorskip("torch")


def raw(path: Path, header: Any, body: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + body)
    return path


def tensor(dtype: str = "F32", shape: Any = (3, 2), offsets: Any = (0, 24)) -> dict[str, Any]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]
)
def test_dtypes(tmp_path: Path, dtype: str) -> None:
    from safetensors.torch import save_file

    x = (torch.randn(9, 4) * 3).to(getattr(torch, dtype))
    save_file({"x": x, "ids": torch.arange(9)}, tmp_path / "x.safetensors", metadata={"format": "pt"})
    rows = open_rows(tmp_path / "x.safetensors", ids="ids")
    np.testing.assert_array_equal(rows.read(1, 8), x[1:8].to(torch.float64).numpy())
    np.testing.assert_array_equal(rows.take(np.array([8, 0, 3])), x[[8, 0, 3]].to(torch.float64).numpy())
    assert rows.dtype == (np.float32 if dtype in ("bfloat16", "float16", "float32") else np.float64)
    np.testing.assert_array_equal(rows.ids, np.arange(9))
    assert rows.name == "x.safetensors:x"


def test_several_tensors_need_a_key(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"layer1": np.zeros((3, 2)), "layer2": np.ones((3, 4))}, tmp_path / "x.safetensors")
    with pytest.raises(InputError, match=r"'layer1' \(3, 2\) float64, 'layer2' \(3, 4\) float64.*key='layer1'"):
        open_rows(tmp_path / "x.safetensors")
    with pytest.raises(InputError, match=r"Did you mean 'layer2' or 'layer1'"):
        open_rows(tmp_path / "x.safetensors", key="layer_2")
    with pytest.raises(InputError, match=r"'zebra' .given as ids.. Available: 'layer1', 'layer2'"):
        open_rows(tmp_path / "x.safetensors", key="layer2", ids="zebra")
    with pytest.raises(InputError, match=r"ids of x\.safetensors:layer\d have"):
        open_rows(tmp_path / "x.safetensors", key="layer2", ids="layer1")


@pytest.mark.parametrize(
    "header, body, length, message",
    [
        (tensor(), bytes(24), 2**63, "declares a header of .* truncated or not a safetensors"),
        (tensor(), bytes(24), 500, "declares a header of 500 bytes"),
        (b"{nope", b"", None, "damaged safetensors header"),
        (b"[" * 100_000, b"", None, "damaged safetensors header"),
        (b"\xff\xfe", b"", None, "damaged safetensors header"),
        ([1], b"", None, "header without tensors"),
        ({}, b"", None, "holds no arrays"),
        (tensor(offsets=(0, 48)), bytes(24), None, "bytes 0 to 48, which are outside"),
        (tensor(offsets=(-24, 0)), bytes(24), None, "bytes -24 to 0, which are outside"),
        (tensor(offsets=(24, 0)), bytes(24), None, "outside"),
        (tensor(), bytes(23), None, "truncated"),
        (tensor(shape=(300, 2)), bytes(24), None, r"shape \(300, 2\) of F32, which does not fill its 24 bytes"),
        (tensor(shape=(2**40, 2**40)), bytes(24), None, "does not fill"),
        (tensor(shape=(-3, -2)), bytes(24), None, "describes the tensor 'x' incorrectly"),
        (tensor(shape="32"), bytes(24), None, "describes the tensor 'x' incorrectly"),
        (tensor(offsets=(0,)), bytes(24), None, "describes the tensor 'x' incorrectly"),
        ({"x": 3}, b"", None, "describes the tensor 'x' incorrectly"),
        (tensor("F8_E4M3", (3, 2), (0, 6)), bytes(6), None, r"dtype F8_E4M3.*x\.to\(torch\.float32\)"),
        (tensor(shape=(6,)), bytes(24), None, r"x\.reshape\(-1, 1\)"),
        (tensor() | {"y": tensor("F32", (6,), (8, 32))["x"]}, bytes(32), None, "begin at byte 8, .* 24"),
        (tensor(offsets=(4, 28)), bytes(28), None, "begin at byte 4, but the tensor before it ends at byte 0"),
        (tensor(), bytes(28), None, "declares tensors of 24 bytes but holds 28"),
        (json.dumps(tensor())[:-1].encode() + b"," + json.dumps(tensor())[1:].encode(), bytes(24), None, "twice"),
        (b'{"x":{"dtype":"F32","dtype":"I32","shape":[3,2],"data_offsets":[0,24]}}', bytes(24), None, "twice"),
        (json.dumps(tensor()).encode("utf-16"), bytes(24), None, "damaged safetensors header: 'utf-8'"),
        (tensor("Q3"), bytes(24), None, "dtype Q3, which nearid cannot read"),
    ],
)
def test_hostile(tmp_path: Path, header: Any, body: bytes, length: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(raw(tmp_path / "x.safetensors", header, body, length))
