"""Models on disk: exact round trips, and a sentence for every damaged or hostile file."""

import hashlib
import json
import os
import pickle
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from nearid import ICA, InputError
from nearid.ica.model import SHAPES


@pytest.fixture(scope="module")
def ica():
    rng = np.random.default_rng(0)
    return ICA(n_components=3, tol=1e-3, random_state=7).fit(rng.laplace(size=(2000, 4)) @ rng.normal(size=(4, 4)))


@pytest.fixture(scope="module")
def saved(ica, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    ica.save(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def edit(folder, change):
    """Change the description in place."""
    about = json.loads((folder / "model.json").read_text())
    change(about)
    (folder / "model.json").write_text(json.dumps(about))


def forge(folder, data):
    """Put other numbers in place, with a digest that agrees."""
    (folder / "model.safetensors").write_bytes(data)
    edit(folder, lambda about: about.update(sha256=hashlib.sha256(data).hexdigest()))


def test_a_model_comes_back_exactly(ica, saved, rng):
    found = ICA.load(saved)
    x = rng.normal(size=(50, 4))
    np.testing.assert_array_equal(found.transform(x), ica.transform(x))
    np.testing.assert_array_equal(found.inverse_transform(x[:, :3]), ica.inverse_transform(x[:, :3]))
    assert found.get_params() == ica.get_params()
    for name in (
        "gradients_",
        "n_iter_",
        "converged_",
        "n_components_",
        "n_features_in_",
        "rank_",
        "seed_",
        "provenance",
    ):
        assert getattr(found, name) == getattr(ica, name), name
    for name in SHAPES:
        np.testing.assert_array_equal(getattr(found, f"{name}_"), getattr(ica, f"{name}_"))
    assert found.to_dict() == ica.to_dict()
    assert list(found.get_feature_names_out()) == list(ica.get_feature_names_out())


def test_saving_twice_gives_the_same_bytes(ica, saved, tmp_path):
    ICA.load(saved).save(tmp_path / "again")
    assert sorted(os.listdir(tmp_path / "again")) == ["model.json", "model.safetensors"]
    for name in os.listdir(saved):
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_random_state_that_json_cannot_hold(rng, tmp_path):
    x = rng.laplace(size=(500, 2))
    fitted = ICA(random_state=np.random.RandomState(3)).fit(x)
    fitted.save(tmp_path / "m")
    found = ICA.load(tmp_path / "m")
    assert found.random_state is None and found.seed_ == fitted.seed_


def test_a_model_of_the_first_format_is_read(ica, folder):
    def backwards(about):
        made, diagnostics = about.pop("provenance"), about["diagnostics"]
        about.update(
            format=1, nearid=made["nearid"], options=made["options"], seed=made["seed"], input=made["inputs"][0]
        )
        diagnostics["cautions"] = [{"kind": "rank", "text": "Some rank."}]
        del diagnostics["alerts"]

    edit(folder, backwards)
    again = ICA.load(folder)
    np.testing.assert_array_equal(again.components_, ica.components_)
    assert again.get_params() == ica.get_params() and again.seed_ == ica.seed_
    assert [(alert.code, alert.message) for alert in again.alerts] == [("rank", "Some rank.")]
    assert again.provenance["inputs"] == ica.provenance["inputs"] and "! Some rank." in str(again)
    again.save(folder)
    assert json.loads((folder / "model.json").read_text())["format"] == 2


def truncated(folder):
    os.truncate(folder / "model.safetensors", 100)


def cut_a_little(folder):
    os.truncate(folder / "model.safetensors", (folder / "model.safetensors").stat().st_size - 8)


def flipped(folder):
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-3] ^= 1
    (folder / "model.safetensors").write_bytes(data)


def pickled(folder):
    size = (folder / "model.safetensors").stat().st_size
    (folder / "model.safetensors").write_bytes(pickle.dumps(os.system).ljust(size, b"."))


def forged_pickle(folder):
    size = (folder / "model.safetensors").stat().st_size
    forge(folder, pickle.dumps(os.system).ljust(size, b"."))


def spoiled(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["mixing"][0, 0] = np.nan
    forge(folder, save(tensors))


def narrower(folder):
    tensors = load_file(folder / "model.safetensors")
    # Twice the passes, so that the size is as declared.
    forge(folder, save({**tensors, "gradients": np.zeros(2 * len(tensors["gradients"]), np.float32)}))


def longer(folder):
    tensors = load_file(folder / "model.safetensors")
    forge(folder, save({**tensors, "gradients": np.append(tensors["gradients"], 1.0)}))


def reshaped(folder):
    tensors = load_file(folder / "model.safetensors")
    forge(folder, save({**tensors, "components": np.ascontiguousarray(tensors["components"].T)}))


def fewer(folder):
    tensors = load_file(folder / "model.safetensors")
    mean = tensors.pop("mean")
    forge(folder, save({**tensors, "median": mean}))


def huge(folder):
    shapes = {"mean": [10**9], "components": [10**6, 10**9], "mixing": [10**9, 10**6]}
    edit(folder, lambda about: about["tensors"].update(shapes, variances=[10**9], kappa=[10**6]))


def huge_file(folder):
    os.truncate(folder / "model.safetensors", 1 << 40)


DAMAGE = {
    truncated: "truncated, or not the right file",
    cut_a_little: "sha256 differs",
    flipped: "sha256 differs",
    pickled: "sha256 differs",
    forged_pickle: "not a whole safetensors file",
    spoiled: "NaN or infinity in mixing",
    narrower: "holds gradients as float32",
    reshaped: r"do not fit together: {'components': \(4, 3\)",
    longer: r"not those that model\.json declares",
    fewer: "do not fit together: .*'median'",
    huge: "truncated, or not the right file",
    huge_file: "truncated, or not the right file",
}
TOLD = {
    "other version": (lambda about: about.update(format=3), "has format 3, but nearid .* reads formats 1 and 2"),
    "no version": (lambda about: about.pop("format"), "does not describe a model"),
    "version of another type": (lambda about: about.update(format=True), "does not describe a model"),
    "another kind": (lambda about: about.update(kind="pca"), "does not describe a model"),
    "no digest": (lambda about: about.pop("sha256"), "The entry 'sha256' of .* is missing or damaged"),
    "digest of another type": (
        lambda about: about.update(sha256=None),
        "The entry 'sha256' of .* is missing or damaged",
    ),
    "no shapes": (lambda about: about.update(tensors={}), "do not fit together"),
    "negative shape": (lambda about: about["tensors"].update(mean=[-4]), "do not fit together"),
    "fractional shape": (lambda about: about["tensors"].update(mean=[4.0]), "do not fit together"),
    "shape of another type": (lambda about: about["tensors"].update(mean="4"), "do not fit together"),
    "shapes disagree": (lambda about: about["tensors"].update(mixing=[3, 4]), "do not fit together"),
    "more components than directions": (
        lambda about: about["tensors"].update(variances=[2]),
        "do not fit together",
    ),
    "unknown option": (lambda about: about["provenance"]["options"].update(evil=1), "does not describe an ICA"),
    "option of another type": (
        lambda about: about["provenance"]["options"].update(tol="x"),
        "does not describe an ICA",
    ),
    "diagnostics of another type": (lambda about: about["diagnostics"].update(rows="<b>"), "rows is '<b>'"),
    "diagnostics of other components": (lambda about: about["diagnostics"].update(z=[1.0]), "z has 1 values for 3"),
    "curvature of nothing": (lambda about: about["diagnostics"].update(curvature=[1]), "does not describe an ICA"),
    "no options": (lambda about: about["provenance"].pop("options"), "The entry 'options' of .* is missing or damaged"),
    "two inputs": (
        lambda about: about["provenance"].update(inputs=[{}, {}]),
        "The entry 'input' of .* is missing or damaged",
    ),
    "no provenance": (lambda about: about.update(provenance=[]), "The entry 'options' of .* is missing or damaged"),
    "alerts of another kind": (lambda about: about["diagnostics"].update(alerts=[1]), "does not describe an ICA"),
    "no diagnostics": (lambda about: about.update(diagnostics={}), "does not describe an ICA"),
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
def test_damaged_numbers_are_told(folder, damage):
    damage(folder)
    with pytest.raises(InputError, match=DAMAGE[damage]):
        ICA.load(folder)


@pytest.mark.parametrize("damage", TOLD)
def test_damaged_descriptions_are_told(folder, damage):
    change, words = TOLD[damage]
    edit(folder, change)
    with pytest.raises(InputError, match=words):
        ICA.load(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a whole JSON file"),
        ('{"format": 1', "not a whole JSON file"),
        ('{"format": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "not a whole JSON file"),
        ("\x80\x04", "does not describe|not a whole JSON file"),
        ("[1, 2]", "does not describe a model"),
    ],
)
def test_a_description_that_is_none(folder, text, words):
    (folder / "model.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=words):
        ICA.load(folder)


def test_what_is_no_model_folder(folder, tmp_path):
    with pytest.raises(InputError, match=f"There is no folder .*missing, .*Models beside it: {folder.name}"):
        ICA.load(tmp_path / "missing")
    with pytest.raises(InputError, match=f"Did you mean {folder}"):
        ICA.load(folder.with_name(f"{folder.name}l"))
    with pytest.raises(InputError, match=r"There is no model .*: the folder .*nowhere does not exist"):
        ICA.load(tmp_path / "nowhere" / "model")
    with pytest.raises(InputError, match="is a file, but a model is a folder"):
        ICA.load(folder / "model.json")
    with pytest.raises(InputError, match=f"is not a model: .*Models in it: {folder}"):
        ICA.load(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"is not a model: .*`nearid unmix X -o FOLDER`"):
        ICA.load(empty)
    (empty / "checkpoint.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="is not finished: run the same `nearid unmix` again"):
        ICA.load(empty)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        ICA.load(folder)


def test_where_no_model_can_be_written(ica, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file, but a model is a folder"):
        ica.save(tmp_path / "file")
    with pytest.raises(InputError, match="There is no folder"):
        ica.save(tmp_path / "no" / "model")


def test_a_model_that_cannot_be_written_leaves_the_old_one(rng, tmp_path, monkeypatch):
    x = rng.laplace(size=(4000, 4))
    first = ICA(3).fit(x)
    first.save(tmp_path / "m")
    other = ICA(np.int64(2), random_state=np.int64(1)).fit(x)
    with monkeypatch.context() as broken:
        broken.setattr(other, "provenance_", {"not": {"json"}})
        with pytest.raises(TypeError):
            other.save(tmp_path / "m")
    np.testing.assert_array_equal(ICA.load(tmp_path / "m").components_, first.components_)
    other.save(tmp_path / "m")
    again = ICA.load(tmp_path / "m")
    assert (again.n_components, again.random_state) == (2, 1)


def test_the_digest_of_many_rows_depends_on_every_number_and_not_on_the_engine(rng, monkeypatch):
    import nearid.ica.model as room
    from nearid.arrays import open_rows
    from nearid.arrays.rows import digest
    from nearid.engines.local import LOCAL, Local

    x = rng.normal(size=(1000, 3))
    small = room.digest_on(LOCAL, open_rows(x))
    assert small == digest(open_rows(x))
    monkeypatch.setattr(room, "BLOCK", 100 * 24)
    items = []

    class Noting(Local):
        def map(self, task, work, *shared, tick=None):
            items.extend(work)
            return super().map(task, work, *shared, tick=tick)

    whole = room.digest_on(Noting(), open_rows(x))
    assert len(items) == 10 and whole == room.digest_on(LOCAL, open_rows(x)) != small
    x[999, 2] += 1e-9
    assert room.digest_on(LOCAL, open_rows(x)) != whole
