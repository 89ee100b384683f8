"""Keys are of contents: the same for equal contents, another for every change."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from nearid.base.cache import Unkeyed
from nearid.questions.models import keys
from nearid.questions.models.keys import data_key, key_of, model_key, options_key


def key_of_data(data):
    return key_of(data_key(data))


def key_of_model(model, **options):
    return key_of(model_key(model, options)[1])


def test_equal_contents_have_one_key_wherever_they_lie(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder / "in").mkdir(parents=True)
        (tmp_path / folder / "texts.txt").write_text("one\ntwo\n")
        (tmp_path / folder / "in" / "x.png").write_bytes(b"x")
    first, second = (tmp_path / folder for folder in ("a", "b"))
    assert key_of_data(str(first / "texts.txt")) == key_of_data(str(second / "texts.txt"))
    assert key_of_data(first / "in") == key_of_data(second / "in")
    lists = [[str(folder / "in" / "x.png"), folder / "in" / "x.png"] for folder in (first, second)]
    assert key_of_data(lists[0]) == key_of_data(lists[1])
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
    before = key_of_data(pictures), key_of_data([str(pictures / "1.png")])
    (pictures / "1.png").write_bytes(b"2")
    assert key_of_data(pictures) != before[0] and key_of_data([str(pictures / "1.png")]) != before[1]
    now = key_of_data(pictures)
    (pictures / "1.png").rename(pictures / "2.png")
    assert key_of_data(pictures) != now


def test_a_string_is_not_what_lies_on_disk_under_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("cls", "last"):
        (tmp_path / name).mkdir()
    assert key_of({"pool": "cls"}) != key_of({"pool": "last"})
    assert key_of_data(["a text", "cls"]) != key_of_data(["a text", "last"])
    before = key_of(["a text", "cls", "."])
    (tmp_path / "cls" / "file").write_text("not looked at")
    assert key_of(["a text", "cls", "."]) == before


@pytest.mark.parametrize("option", ["ids", "mask", "tokenizer"])
def test_options_that_are_paths_count_with_their_contents(tmp_path, option):
    place = tmp_path / ("folder" if option == "tokenizer" else "it.npy")
    file = place
    if option == "tokenizer":
        place.mkdir()
        file = place / "vocab.txt"
    found = set()
    for contents in (b"one", b"two"):
        file.write_bytes(contents)
        found.add(key_of(options_key({option: str(place)})))
    found |= {key_of(options_key({option: "column"})), key_of(options_key({}))}
    assert len(found) == 4


def test_a_file_is_no_folder_and_a_linked_folder_is_not_followed(tmp_path):
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    (tmp_path / "1" / "x").write_bytes(b"")
    (tmp_path / "2" / "x").mkdir()
    assert key_of_data(tmp_path / "1" / "x") != key_of_data(tmp_path / "2" / "x")
    (tmp_path / "2" / "link").symlink_to(tmp_path / "1")
    with pytest.raises(Unkeyed, match="links"):
        key_of_data(tmp_path / "2")


def test_the_places_of_listed_pictures_count(tmp_path):
    def listed(home, *names):
        paths = [tmp_path / home / name for name in names]
        for number, path in enumerate(paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"%d" % number)
        return key_of_data([str(path) for path in paths])

    before = listed("a/set", "cat/1.png", "dog/2.png")
    assert listed("b/set", "cat/1.png", "dog/2.png") == before
    # Ids are paths below the common folder, whose name is that of the data.
    assert listed("a/set", "katze/1.png", "hund/2.png") != before
    assert listed("a/other", "cat/1.png", "dog/2.png") != before


def test_the_tokeniser_beside_an_onnx_file_counts(tmp_path):
    pytest.importorskip("onnx")
    from onnx_files import save

    model = tmp_path / "m.onnx"
    weights = {"w": np.ones((4, 2), np.float32)}
    save(model, [("MatMul", ["x", "w"], ["y"], "mm")], {"x": ["n", 4]}, ["y"], weights)
    alone = key_of_model(str(model))
    (tmp_path / "notes.md").write_text("not looked at")
    assert key_of_model(str(model)) == alone
    found = {alone}
    for text in ("{}", "[]"):
        (tmp_path / "tokenizer.json").write_text(text)
        found.add(key_of_model(str(model)))
    (tmp_path / "special_tokens_map.json").write_text("{}")
    found.add(key_of_model(str(model)))
    assert len(found) == 4
    # Another tokeniser is told among the options.
    assert key_of_model(str(model), tokenizer="other") == alone


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
import torch
from torch import nn
from helper_of_a_test import BY
import package_of_a_test.inner

class Net(nn.Module):
    def __init__(self, by=2.0, **more):
        super().__init__()
        self.inner, self.by = nn.Linear(2, 2), by
        self.register_buffer("passing", torch.ones(1) * BY, persistent=False)
        for name, value in more.items():
            setattr(self, name, value)

    def forward(self, x):
        return self.inner(x) * self.by

    def other(self, x):
        return x
"""
HELPERS = {
    "helper_of_a_test.py": "BY = 1.0",
    "package_of_a_test/__init__.py": "",
    "package_of_a_test/inner.py": "def f():\n    from . import deep",
    "package_of_a_test/deep.py": "HERE = 1",
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The key of a module whose code and helpers are in files of a user, some of them replaced."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0].endswith("_of_a_test")]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def make(files=None, *, late=False, change=None, **given):
        forget()
        for name, source in ({"nets_of_a_test.py": MODULE} | HELPERS | (files or {})).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(source)
        nets = importlib.import_module("nets_of_a_test")
        if not late:
            importlib.import_module("package_of_a_test.deep")
        torch.manual_seed(0)
        module = nets.Net(**given)
        if change is not None:
            change(module)
        return key_of_model(module)

    yield make
    forget()


def test_code_that_a_module_is_made_of_counts(made):
    before = made()
    assert made() == before
    assert made({"nets_of_a_test.py": MODULE.replace("* self.by", "+ self.by")}) != before
    for name, source in HELPERS.items():
        assert made({name: f"{source}\n# changed"}) != before, name
    # Set since it was imported.
    assert made(change=lambda module: setattr(sys.modules["helper_of_a_test"], "BY", 5.0)) != before


def test_attributes_of_a_module_count(made):
    keys = [
        made(),
        made(by=3.0),
        made(_t=np.zeros(2)),
        made(_t=np.ones(2)),
        made(_t=[torch.ones(2), (1, "a")]),
        made(_t=[torch.ones(2), [1, "a"]]),
        made(_t=torch.ones(2, dtype=torch.bfloat16)),
        made(_t=torch.ones(2)),
        made(_t={"a", "b"}),
        made(act=torch.tanh),
        made(act=nn.functional.silu),
        made(kind=nn.ReLU),
        made(change=lambda module: setattr(module, "act", module.other)),
        made(change=lambda module: module.passing.add_(1)),
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"act": lambda x: x}, "act"),
        ({"_hidden": object()}, "_hidden"),
        ({"_many": [object()]}, "_many"),
        ({"change": lambda module: setattr(module.inner, "forward", abs)}, "forward"),
        ({"change": lambda module: module.inner.register_forward_pre_hook(print)}, "hooks"),
        ({"late": True}, "deep, which is not imported yet"),
        ({"files": {"helper_of_a_test.py": "BY = eval('1.0')"}}, "calls eval"),
        ({"files": {"helper_of_a_test.py": "import importlib\nBY = 1.0"}}, "imports by names"),
    ],
)
def test_what_cannot_be_told_for_certain_has_no_key(made, given, message):
    with pytest.raises(Unkeyed, match=message):
        made(**given)


def test_functions_of_torch_in_its_own_modules_count():
    def key(activation):
        torch.manual_seed(0)
        return key_of_model(nn.TransformerEncoderLayer(4, 2, 4, activation=activation, batch_first=True))

    assert key(nn.functional.silu) == key(nn.functional.silu) != key(torch.tanh)
    with pytest.raises(Unkeyed, match="activation"):
        key(lambda x: x)
    assert key_of_model(nn.LSTM(2, 3))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_modules_have_no_key():
    with pytest.raises(Unkeyed, match="compiled"):
        key_of_model(torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2)))


def test_evaluation_mode_does_not_count():
    torch.manual_seed(0)
    module = torch.nn.Linear(2, 2)
    before = key_of(model_key(module, {})[1])
    assert key_of(model_key(module.eval(), {})[1]) == before
