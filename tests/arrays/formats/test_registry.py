"""A format that a test registers works wherever a path is taken; and what holds for the files of every format."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from arrays_written import WRITERS
from nearid import compare, compare_heads, deconfound, extract, mcc, score, unmix
from nearid.arrays import open_columns, open_rows
from nearid.arrays.formats.registry import FORMATS, Format, Loaded, format_of, register, suffixes
from nearid.arrays.paths import open_contents
from nearid.base.errors import InputError
from nearid.base.files import write_text

# Cut text is text, of which a part of the rows is left.
TEXT = (".csv",)
# Entries of the files below that name the rows.
LABELS = {".npz": "labels", ".safetensors": "labels", ".h5": "group/labels", ".pt": "labels"}


def contents(path, name):
    held = json.loads(Path(path).read_text())
    return Loaded(path, name, {entry: np.asarray(values) for entry, values in held.items()})


def write(target, shape, dtype, blocks, change=None, about=None):
    write_text(target, json.dumps({"rows": [row.tolist() for block in blocks for row in block]}))


@pytest.fixture
def jsons(tmp_path):
    """A format of arrays by name as JSON, registered for a test; gives a function that writes such files."""
    new = register(Format((".arrays",), contents, write=write, weights=True))

    def save(name, **arrays):
        write(path := tmp_path / name, None, None, ())
        path.write_text(json.dumps({entry: np.asarray(values).tolist() for entry, values in arrays.items()}))
        return path

    yield save
    FORMATS.remove(new)


def test_a_registered_format_opens_as_rows_columns_and_vectors(jsons, rng):
    x = rng.normal(size=(6, 2))
    path = jsons("x.arrays", x=x, who=list("abcdef"))
    rows = open_rows(path, ids="who")
    np.testing.assert_array_equal(rows.read(0, 6), x)
    assert rows.name == "x.arrays:x" and list(rows.ids) == list("abcdef")
    assert open_rows(f"{path}:x").shape == (6, 2)
    with pytest.raises(InputError, match=r"nothing named 'y' .*Available: 'x', 'who'"):
        open_rows(path, key="y")
    table = open_columns(jsons("u.arrays", size=range(6), kind=list("aabbcc")), ids=None)
    assert list(table.values) == ["size", "kind"] and list(table.values["kind"]) == list("aabbcc")
    (Path(path).parent / "x.other").write_text("")
    with pytest.raises(InputError, match=r"Supported: .*\.arrays"):
        open_rows(Path(path).parent / "x.other")


@pytest.mark.filterwarnings("ignore")
def test_a_registered_format_answers_every_question(jsons, rng, tmp_path, nearid):
    s = rng.laplace(size=(300, 3))
    one, two = jsons("one.arrays", x=s @ rng.normal(size=(3, 3))), jsons("two.arrays", x=s @ rng.normal(size=(3, 3)))
    assert compare(one, two).verdict.group == "linear"
    factors = jsons("factors.arrays", a=s[:, 0], b=s[:, 1])
    assert score(one, factors, measures="r2").to_dict()
    assert 0 <= mcc(one, factors).value <= 1
    labels = jsons("labels.arrays", label=["x", "y"] * 150, batch=["1", "2", "3"] * 100)
    deconfounding = deconfound(one, "label", "batch", meta=labels, conditions="base", classifiers="logistic")
    assert deconfounding.to_dict()
    model = unmix(one, tmp_path / "unmixed", format="arrays")
    np.testing.assert_allclose(open_rows(tmp_path / "unmixed" / "components.arrays").read(0, 300), model.transform(one))
    heads = [jsons(f"h{i}.arrays", **{"head.weight": rng.normal(size=(9, 3)), "head.bias": np.ones(9)}) for i in (1, 2)]
    assert compare_heads(f"{heads[0]}:head.weight", f"{heads[1]}:head.weight", one, two).biased
    done = nearid("compare", "one.arrays", "two.arrays", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"]["group"] == "linear", done.stderr


def test_a_registered_format_gives_inputs_and_weights_and_takes_layers(jsons, rng, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    inputs = jsons("inputs.arrays", x=rng.normal(size=(10, 3)), ids=range(100, 110))
    weights = jsons("weights.arrays", **{name: w.detach().numpy() for name, w in net.state_dict().items()})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_for_registry.py").write_text(
        "from torch import nn\ndef make():\n    return nn.Sequential(nn.Linear(3, 2))\n"
    )
    layers = extract(weights, inputs, key="x", factory="made_for_registry:make", out=tmp_path / "out", format="arrays")
    expected = net(torch.tensor(open_rows(f"{inputs}:x").read(0, 10), dtype=torch.float32)).detach().numpy()
    again = open_rows(f"{tmp_path}/out:0")
    np.testing.assert_allclose(again.read(0, 10), expected, rtol=1e-6)
    assert list(again.ids) == list(range(100, 110)) and layers["0"].shape == (10, 2)
    assert (tmp_path / "out" / "0.arrays").exists()
    # A file of the folder alone has the ids that lie beside it.
    assert list(open_rows(tmp_path / "out" / "0.arrays").ids) == list(range(100, 110))


def test_what_was_registered_can_be_taken_back(tmp_path):
    new = register(Format((".arrays",), contents))
    assert format_of(tmp_path / "X.ARRAYS") is new and ".arrays" in suffixes() and ".arrays" not in suffixes("writes")
    later = register(Format((".more.arrays",), contents))
    assert format_of(tmp_path / "x.more.arrays") is later and format_of(tmp_path / "x.arrays") is new
    for each in (new, later):
        FORMATS.remove(each)
    assert format_of(tmp_path / "x.arrays") is None


def test_every_format_has_a_file_here(tmp_path, matrix):
    """The tests below read `written`: a format without a writer there would not be tested."""
    tested = {id(format_of(make(tmp_path, matrix))) for make in WRITERS}
    assert [known.suffixes for known in FORMATS if id(known) not in tested and known.suffixes != (".h5ad",)] == [()]


@pytest.mark.parametrize("kept", [0, 0.2, 0.7, 0.99])
def test_cut_files_are_refused(written, kept):
    if written.is_dir():
        for chunk in [path for path in written.rglob("*") if path.is_file()][:1]:
            chunk.write_bytes(b"")
    elif written.suffix in TEXT and kept:
        pytest.skip("a part of a text is a text")
    else:
        data = written.read_bytes()
        written.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(InputError, match=written.name):
        rows = open_rows(written)
        rows.read(0, rows.shape[0])


def test_unknown_names_are_refused(written):
    for option in ("key", "ids"):
        with pytest.raises(InputError, match=rf"{written.name} (has nothing named 'nowhere'|is a )"):
            open_rows(written, **{option: "nowhere"})


def test_ids_from_another_entry(written, matrix):
    if written.suffix not in LABELS:
        pytest.skip("no entry of this file names rows")
    rows = open_rows(written, ids=LABELS[written.suffix])
    assert rows.ids.tolist() == list(range(len(matrix)))
    assert pickle.loads(pickle.dumps(rows)).ids.tolist() == rows.ids.tolist()


@pytest.mark.parametrize("make", WRITERS, ids=lambda make: make.__name__)
def test_values_that_are_missing_stay_so_and_too_few_rows_are_refused(make, tmp_path, matrix):
    holes = matrix.copy()
    holes[3, 1], holes[4, 2] = np.nan, np.inf
    np.testing.assert_array_equal(open_rows(make(tmp_path, holes)).read(0, len(holes)), holes)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    with pytest.raises(InputError):
        open_rows(make(tmp_path, matrix[:1]))


def test_contents_give_whole_arrays(written, matrix):
    held = open_contents(written)
    entry = next(name for name, declared in held.entries.items() if declared.shape == matrix.shape)
    np.testing.assert_array_equal(np.asarray(held.array(entry)), matrix)


@pytest.mark.parametrize("suffix", [s for s in suffixes("writes")])
def test_what_is_written_is_read(tmp_path, matrix, suffix):
    known = format_of(target := tmp_path / f"x{suffix}")
    known.write_rows(target, matrix.shape, matrix.dtype, iter([matrix[:20], matrix[20:]]))
    np.testing.assert_array_equal(open_rows(target).read(0, len(matrix)), matrix)
