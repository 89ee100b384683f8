import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError

torch = pytest.importorskip("torch")


class Payload:
    """Makes a folder when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".th", ".ckpt"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64"])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_tensor(tmp_path: Path, suffix: str, dtype: str, zipped: bool) -> None:
    x = (torch.randn(9, 4) * 5).to(getattr(torch, dtype))
    path = tmp_path / f"x{suffix}"
    torch.save(x, path, _use_new_zipfile_serialization=zipped)
    rows = open_rows(path)
    assert rows.name == path.name
    np.testing.assert_array_equal(rows.read(2, 6), x[2:6].double().numpy())


def test_entries(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    x, y = torch.randn(3, 2), torch.randn(3, 4)
    torch.save({"model": {"enc.weight": x, "layers": [y, y + 1]}, "epoch": 3, "who": ["a", "b", "c"]}, path)
    with pytest.raises(InputError, match=r"3 two-dimensional arrays: 'model.enc.weight' \(3, 2\) float32"):
        open_rows(path)
    rows = open_rows(path, key="model.layers.1", ids="who")
    np.testing.assert_array_equal(rows.read(0, 3), (y + 1).numpy())
    assert rows.ids is not None and rows.ids.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"Did you mean 'model.enc.weight'"):
        open_rows(path, key="model.enc.weights")
    with pytest.raises(InputError, match=r"nothing named 'whom' .given as ids.*Did you mean 'who'"):
        open_rows(path, key="model.layers.1", ids="whom")


@pytest.mark.parametrize("zipped", [True, False])
def test_code_is_never_run(tmp_path: Path, zipped: bool) -> None:
    marker = tmp_path / "ran"
    torch.save(
        {"x": torch.zeros(3, 2), "evil": Payload(marker)}, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped
    )
    with pytest.raises(InputError) as caught:
        open_rows(tmp_path / "x.pt", key="x")
    message = str(caught.value)
    assert message.startswith(
        "x.pt holds Python objects that could run code when they are loaded, so nearid never unpickles."
    )
    assert " The first of them is posix.mkdir. " in message
    assert "torch.save(tensor" in message and "weights_only" not in message
    assert caught.value.__suppress_context__
    assert not marker.exists()


def test_a_whole_model_is_refused_with_what_to_save(tmp_path: Path) -> None:
    torch.save(torch.nn.Sequential(torch.nn.Linear(2, 2)), tmp_path / "x.pt")
    with pytest.raises(InputError, match=r"Sequential\. Save the .* torch\.save\(model\.state_dict\(\), path\)"):
        open_rows(tmp_path / "x.pt")


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_pickles_are_refused(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "x.pt").write_bytes(pickle.dumps(Payload(marker), protocol))
    with pytest.raises(InputError, match=r"could run code"):
        open_rows(tmp_path / "x.pt")
    assert not marker.exists()


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_modules_and_scripts_are_refused(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "script.pt")
    for name in ("module.pt", "script.pt"):
        with pytest.raises(InputError, match=r"could run code"):
            open_rows(tmp_path / name)


def test_garbage(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(b"no tensor at all")
    with pytest.raises(InputError, match=r"truncated or damaged"):
        open_rows(tmp_path / "x.pt")


def test_a_file_that_becomes_shorter_meanwhile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(100, 3), path)
    is_zipfile = zipfile.is_zipfile

    def cut(name: str) -> bool:
        seen = is_zipfile(name)
        os.truncate(name, 500)
        return seen

    monkeypatch.setattr(zipfile, "is_zipfile", cut)
    with pytest.raises(InputError, match="it is truncated or damaged"):
        open_rows(path)


def test_compressed_archives_are_refused(tmp_path: Path) -> None:
    torch.save(torch.zeros(100, 20), tmp_path / "x.pt")
    with (
        zipfile.ZipFile(tmp_path / "x.pt") as old,
        zipfile.ZipFile(tmp_path / "y.pt", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    with pytest.raises(InputError, match=r"compressed archive"):
        open_rows(tmp_path / "y.pt")


def test_torch_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.pt").write_bytes(b"")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(InputError, match="pip install torch"):
        open_rows(tmp_path / "x.pt")


def test_what_is_put_around_weights_need_not_be_named(tmp_path: Path) -> None:
    path, weight = tmp_path / "x.th", torch.randn(3, 2)
    many = {f"module.layer{k}.weight": torch.zeros(2, 2) for k in range(30)}
    torch.save({"state_dict": {**many, "module.linear.weight": weight}}, path)
    rows = open_rows(path, key="linear.weight")
    assert rows.name == "x.th:state_dict.module.linear.weight"
    np.testing.assert_array_equal(rows.read(0, 3), weight.numpy())
    # An ending that several have is no name, but they are shown.
    with pytest.raises(InputError, match=r"Did you mean 'state_dict.module.layer0.weight' or"):
        open_rows(path, key="weight")


def test_entries_that_hold_themselves_are_refused(tmp_path: Path) -> None:
    inside: dict[str, object] = {"x": torch.zeros(3, 2)}
    inside["again"] = inside
    # Small to save, but with more names than could ever be listed.
    many: list[object] = [torch.zeros(2)]
    for _ in range(30):
        many = [many] * 10
    for saved in (inside, many):
        torch.save(saved, tmp_path / "x.pt")
        with pytest.raises(InputError, match=r"nests its entries .* Save the tensor"):
            open_rows(tmp_path / "x.pt", key="x")


@pytest.mark.parametrize("nested", [True, False])
def test_names_that_collide_are_refused(tmp_path, nested):
    import torch

    t = torch.zeros(4, 2)
    torch.save({"a": {"b": t}, "a.b": t + 1} if nested else {1: t, "1": t + 1}, tmp_path / "x.pt")
    with pytest.raises(InputError, match="several entries named"):
        open_rows(tmp_path / "x.pt", key="a.b" if nested else "1")
