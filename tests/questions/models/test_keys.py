"""Keys are of contents: the same for equal contents, another for every change."""

import numpy as np
import pandas as pd
import pytest
import torch

from nearid.questions.models import keys
from nearid.questions.models.keys import Unkeyed, key_of, model_key


def test_equal_contents_have_one_key_wherever_they_lie(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder / "in").mkdir(parents=True)
        (tmp_path / folder / "texts.txt").write_text("one\ntwo\n")
        (tmp_path / folder / "in" / "x.png").write_bytes(b"x")
    first, second = (tmp_path / folder for folder in ("a", "b"))
    assert key_of(str(first / "texts.txt")) == key_of(str(second / "texts.txt"))
    assert key_of(first / "in") == key_of(second / "in")
    assert key_of(np.arange(3.0)) == key_of(np.arange(6.0)[:3].copy())
    assert key_of(np.arange(12).reshape(3, 4)[:, :2]) == key_of(np.arange(12).reshape(3, 4)[:, :2].copy())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), np.zeros(2, np.int64)),
        (["ab", "c"], ["a", "bc"]),
        (["a"], [["a"]]),
        ([1], ["1"]),
        ([True], [1]),
        ({"a": 1, "b": 2}, {"b": 1, "a": 2}),
        ({"a": None}, {}),
        (pd.Series(["a", "b"]), pd.Series(["a", "b"], index=[1, 2])),
        (pd.DataFrame({"t": ["a"]}), pd.DataFrame({"u": ["a"]})),
        (torch.zeros(2), torch.ones(2)),
        ("~nobody went home", "~nobody went"),
        ("x" * 100_000, "x" * 100_001),
        ("a\0b", "a\0c"),
    ],
)
def test_other_contents_have_another_key(one, other):
    assert key_of(one) != key_of(other) and key_of(one) == key_of(one)


def test_a_changed_file_has_another_key(tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "1.png").write_bytes(b"1")
    before = key_of(pictures), key_of([str(pictures / "1.png")])
    (pictures / "1.png").write_bytes(b"2")
    assert key_of(pictures) != before[0] and key_of([str(pictures / "1.png")]) != before[1]
    now = key_of(pictures)
    (pictures / "1.png").rename(pictures / "2.png")
    assert key_of(pictures) != now


def test_other_versions_have_another_key(monkeypatch):
    before = key_of("x")
    monkeypatch.setattr(keys, "__version__", "9.9")
    assert key_of("x") != before


def test_what_can_be_used_once_has_none():
    for thing in (iter([1]), lambda x: x, [object()]):
        with pytest.raises(Unkeyed):
            key_of(thing)


def test_the_folder_of_a_model_is_told_by_its_files_and_nothing_is_loaded(tmp_path, monkeypatch):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "vocab.txt").write_text("a")
    (model / "checkpoint-500").mkdir()
    given, before = model_key(str(model), {})
    assert given == str(model)
    (model / "checkpoint-500" / "optimizer.pt").write_text("not looked at")
    assert model_key(str(model), {})[1] == before
    (model / "vocab.txt").write_text("b")
    assert model_key(str(model), {})[1] != before


MODULE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, by=2.0, act=None):
        super().__init__()
        self.inner, self.by = nn.Linear(2, 2), by
        if act is not None:
            self.act = act

    def forward(self, x):
        return self.inner(x) * self.by
"""


def test_code_and_plain_numbers_of_a_module_count(tmp_path, monkeypatch):
    def made(source, *given):
        (tmp_path / "nets_of_a_test.py").write_text(source)
        names = {"__name__": "nets_of_a_test"}
        exec(compile(source, str(tmp_path / "nets_of_a_test.py"), "exec"), names)
        torch.manual_seed(0)
        module = names["Net"](*given)
        monkeypatch.setattr("inspect.getsourcefile", lambda kind: str(tmp_path / "nets_of_a_test.py"))
        return key_of(model_key(module, {})[1])

    before = made(MODULE)
    assert made(MODULE) == before
    assert made(MODULE.replace("* self.by", "+ self.by")) != before
    assert made(MODULE, 3.0) != before
    with pytest.raises(Unkeyed, match="act"):
        made(MODULE, 2.0, torch.tanh)


def test_evaluation_mode_does_not_count():
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 2)
    before = key_of(model_key(module, {})[1])
    assert key_of(model_key(module.eval(), {})[1]) == before
