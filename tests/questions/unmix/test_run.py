"""Unmixing: what is written, taking up what was interrupted, losing nothing that was there; checkpoints on disk."""

import json
import os
import pickle
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from nearid import ICA, InputError, unmix
from nearid.arrays import open_rows
from nearid.base.files import alone_in
from nearid.base.resume import Resumable
from nearid.ica.model import LARGEST_ABOUT
from nearid.ica.recurrence import Tried
from nearid.ica.solver import Checkpoint
from nearid.questions.unmix.run import Keeper, left_behind, refuse_input


@pytest.fixture
def x(rng):
    return (rng.laplace(size=(3000, 6)) @ rng.normal(size=(6, 6))).astype(np.float32)


@pytest.fixture(autouse=True)
def every_pass(monkeypatch):
    monkeypatch.setattr(Resumable, "due", lambda self: True)


class Stop(BaseException):
    pass


def stopping_after(passes):
    """A Progress that interrupts after so many passes of the fit; 0 lets the fit end and stops at its components."""
    left = [passes]

    def stage(name, steps):
        if name == "components":
            raise Stop

        def tick():
            left[0] -= 1
            if left[0] == 0:
                raise Stop

        return tick

    return stage


def run(folder, x, **options):
    stages = []
    options = {"progress": lambda name, steps: stages.append(name) or (lambda: None), **options}
    ica = unmix(open_rows(x), folder, **{"tol": 1e-6, "dtype": "float64", **options})
    return ica, [name for name in stages if name not in ("passes, at most", "components")]


def test_without_a_folder_nothing_is_written(x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ica = unmix(x, n_components=4)
    np.testing.assert_array_equal(ica.components_, ICA(4).fit(x).components_)
    assert os.listdir(tmp_path) == [] and ica.provenance["options"]["n_components"] == 4


def test_options_that_chose_the_rows_are_recorded_and_read_again(rng, tmp_path):
    import pandas as pd

    x = pd.DataFrame(rng.laplace(size=(300, 4)), columns=["a1", "a2", "a3", "plate"])
    x.iloc[7, 0] = np.nan
    given = {"drop_nonfinite": True, "features": ["a*"], "exclude": "a3"}
    ica = unmix(x, tmp_path / "out", **given)
    again = ICA.load(tmp_path / "out")
    for fitted in (ica, again):
        options = fitted.provenance["options"]
        assert {name: options[name] for name in given} == given and fitted.n_features_in_ == 2
    assert again.get_params() == ica.get_params()


def test_no_warning_is_raised_for_what_the_alerts_say(rng, recwarn):
    ica = unmix(rng.normal(size=(500, 2)), max_passes=2)
    assert {"gaussian"} <= {alert.code for alert in ica.alerts} and not recwarn.list


def test_what_is_written(x, tmp_path):
    found, said = run(tmp_path / "out", x)
    assert sorted(os.listdir(tmp_path / "out")) == ["components.npy", "model.json", "model.safetensors"]
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "components.npy"), found.transform(x))
    np.testing.assert_array_equal(ICA.load(tmp_path / "out").components_, found.components_)
    np.testing.assert_array_equal(ICA(tol=1e-6, dtype="float64").fit(x).components_, found.components_)
    assert said == []


def test_an_interrupted_fit_goes_on_and_ends_at_the_same_place(x, tmp_path):
    whole, _ = run(tmp_path / "whole", x)
    with pytest.raises(Stop):
        run(tmp_path / "out", x, progress=stopping_after(6))
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    assert "run the same command again" in left_behind(tmp_path / "out")
    found, said = run(tmp_path / "out", x)
    assert "Continuing after" in said[0]
    assert sorted(os.listdir(tmp_path / "out")) == ["components.npy", "model.json", "model.safetensors"]
    assert found.converged_
    np.testing.assert_allclose(found.components_, whole.components_, atol=1e-4 * np.abs(whole.components_).max())


def test_more_passes_may_be_given_but_nothing_else_changed(x, tmp_path):
    with pytest.raises(Stop):
        run(tmp_path / "out", x, progress=stopping_after(6))
    for options in ({"contrast": "exp"}, {"n_components": 3}, {"random_state": 1}, {"whiten": False}):
        with pytest.raises(InputError, match="unfinished fit of something else"):
            run(tmp_path / "out", x, **options)
    with pytest.raises(InputError, match="unfinished fit of something else: input digest"):
        run(tmp_path / "out", x + 1)
    assert run(tmp_path / "out", x, max_passes=400, tol=1e-5)[0].converged_


def test_restart_begins_anew(x, tmp_path):
    with pytest.raises(Stop):
        run(tmp_path / "out", x, progress=stopping_after(6))
    found, said = run(tmp_path / "out", x + 1, restart=True)
    assert said == [] and found.converged_


def test_components_are_written_when_only_they_are_missing(x, tmp_path, monkeypatch):
    with pytest.raises(Stop):
        run(tmp_path / "out", x, progress=stopping_after(0))
    assert sorted(os.listdir(tmp_path / "out")) == ["model.json", "model.safetensors"]
    assert "write its components" in left_behind(tmp_path / "out")
    with pytest.raises(InputError, match="already contains a model"):
        run(tmp_path / "out", x, tol=1e-3)
    with pytest.raises(InputError, match="already contains a model"):
        run(tmp_path / "out", x + 1)
    monkeypatch.setattr(ICA, "fit_rows", lambda *args, **kwargs: pytest.fail("fitted again"))
    found, said = run(tmp_path / "out", x)
    assert "only its components" in said[0]
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "components.npy"), found.transform(x))


def test_a_change_of_one_number_is_another_input(x, tmp_path):
    changed = x.copy()
    # No row that the fingerprint samples.
    changed[1] = 0
    assert open_rows(changed).fingerprint() == open_rows(x).fingerprint()
    with pytest.raises(Stop):
        run(tmp_path / "fit", x, progress=stopping_after(6))
    with pytest.raises(InputError, match="unfinished fit of something else: input digest"):
        run(tmp_path / "fit", changed)
    with pytest.raises(Stop):
        run(tmp_path / "components", x, progress=stopping_after(0))
    with pytest.raises(InputError, match="already contains a model"):
        run(tmp_path / "components", changed)


def test_a_finished_model_is_replaced_only_on_request(x, tmp_path):
    first, _ = run(tmp_path / "out", x)
    for restart in (False, True):
        with pytest.raises(InputError, match=r"already contains a model.*--overwrite"):
            run(tmp_path / "out", x, n_components=2, restart=restart)
    with pytest.raises(Stop):
        run(tmp_path / "out", x, n_components=2, overwrite=True, progress=stopping_after(3))
    assert ICA.load(tmp_path / "out").n_components_ == 6
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "components.npy"), first.transform(x))
    _, said = run(tmp_path / "out", x, n_components=2, overwrite=True, format="zarr")
    assert "Continuing" in said[0]
    assert sorted(os.listdir(tmp_path / "out")) == ["components.zarr", "model.json", "model.safetensors"]


def test_a_damaged_model_can_be_replaced(x, tmp_path):
    run(tmp_path / "out", x)
    (tmp_path / "out" / "components.npy").unlink()
    (tmp_path / "out" / "model.json").write_text("{")
    with pytest.raises(InputError, match="already contains a model"):
        run(tmp_path / "out", x)
    assert run(tmp_path / "out", x, overwrite=True)[0].converged_


def test_failures_leave_no_folder_behind(x, tmp_path):
    x[5, 1] = np.nan
    with pytest.raises(InputError, match="nan at row 5, column 1"):
        run(tmp_path / "out", x)
    with pytest.raises(InputError, match=r"tol is -1\.0, but a number above 0 is expected"):
        run(tmp_path / "out", x, tol=-1.0)
    assert os.listdir(tmp_path) == []
    (tmp_path / "kept").mkdir()
    with pytest.raises(InputError, match="nan at row"):
        run(tmp_path / "kept", x)
    assert os.listdir(tmp_path) == ["kept"]
    assert left_behind(tmp_path / "kept") == "nothing was written"


def test_rows_left_out_have_components_of_nan(x, tmp_path):
    x[5, 1] = np.nan
    run(tmp_path / "out", x, drop_nonfinite=True)
    found = np.load(tmp_path / "out" / "components.npy")
    assert np.isnan(found[5]).all() and np.isfinite(np.delete(found, 5, axis=0)).all() and len(found) == 3000


def test_the_input_is_not_among_the_outputs(tmp_path):
    out = tmp_path / "out"
    for source in (
        out,
        out / "components.npy",
        out / "components.zarr",
        out / "components.zarr" / "c",
        tmp_path / "x.zarr",
    ):
        folder = source / "out" if source.name == "x.zarr" else out
        with pytest.raises(InputError, match="would damage the input"):
            refuse_input(folder, str(source))
    refuse_input(out, str(out / "x.npy"))


def test_a_search_that_ran_out_of_passes_goes_on(x, tmp_path):
    found, _ = run(tmp_path / "out", x, max_passes=3, tol=1e-8)
    assert not found.converged_ and (tmp_path / "out" / "checkpoint.safetensors").exists()
    with pytest.raises(InputError, match="continues a search that ran out of passes"):
        run(tmp_path / "out", x)
    again, said = run(tmp_path / "out", x, overwrite=True, tol=1e-8)
    assert again.converged_ and "after 3 passes" in said[0]
    assert not (tmp_path / "out" / "checkpoint.safetensors").exists()
    np.testing.assert_allclose(again.components_, ICA(tol=1e-8, dtype="float64").fit(x).components_, atol=1e-5)


def test_old_components_stay_where_there_is_no_room_for_new_ones(x, tmp_path, monkeypatch):
    run(tmp_path / "out", x)
    before = sorted(os.listdir(tmp_path / "out"))
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(InputError, match="of disk space"):
        run(tmp_path / "out", x, overwrite=True, random_state=1)
    assert sorted(os.listdir(tmp_path / "out")) == before


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("model.safetensors", save({"embeddings.weight": np.ones((10, 8), np.float32)})),
        ("model.safetensors", b"something else"),
        ("model.json", b'{"model_type": "bert"}'),
        ("components.npy", b"of somebody else"),
        ("components.ids.npy", b"of somebody else"),
        ("components.zarr.ids.npy", b"of somebody else"),
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_somebody_else_are_never_replaced(x, tmp_path, name, data, overwrite):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(data)
    with pytest.raises(InputError, match=f"holds a file {name} that nearid unmix did not write"):
        run(tmp_path / "out", x, overwrite=overwrite)
    assert contents(tmp_path / "out") == {name: data}


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "checkpoint.safetensors"])
def test_a_pipe_in_the_folder_is_refused_without_waiting(x, tmp_path, name):
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / name)

    def waits(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, waits)
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        with pytest.raises(InputError, match=name):
            run(tmp_path / "out", x)
        left_behind(tmp_path / "out")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (tmp_path / "out" / name).is_fifo()


def test_a_file_too_large_for_a_description_is_refused_unread(x, tmp_path, monkeypatch):
    run(tmp_path / "out", x)
    with open(tmp_path / "out" / "model.json", "r+b") as file:
        file.truncate(LARGEST_ABOUT + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(InputError, match=r"holds a file model\.json that nearid unmix did not write"):
        run(tmp_path / "out", x, overwrite=True)


@pytest.mark.parametrize("restart", [False, True])
def test_a_checkpoint_of_somebody_else_stays(x, tmp_path, restart):
    data = save({"w": np.ones((10, 8), np.float32)})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "checkpoint.safetensors").write_bytes(data)
    with pytest.raises(InputError, match="is not a checkpoint of nearid unmix"):
        run(tmp_path / "out", x, restart=restart)
    assert contents(tmp_path / "out") == {"checkpoint.safetensors": data}
    assert left_behind(tmp_path / "out") == "nothing was written"


def test_a_model_whose_description_was_not_written_any_more_is_fitted_again(x, tmp_path):
    run(tmp_path / "out", x)
    for name in ("model.json", "components.npy"):
        (tmp_path / "out" / name).unlink()
    assert run(tmp_path / "out", x)[0].converged_


def test_one_fit_at_a_time_in_a_folder(x, tmp_path):
    (tmp_path / "out").mkdir()
    with alone_in(tmp_path / "out"), pytest.raises(InputError, match="Another process is at work"):
        run(tmp_path / "out", x)
    assert os.listdir(tmp_path / "out") == []


def test_a_link_to_nowhere_is_no_folder(x, tmp_path):
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(InputError, match="out is a link to nowhere, which does not exist"):
        run(tmp_path / "out", x)


IDENTITY = {
    "input": {"shape": [500, 4], "dtype": "float32", "digest": "0123456789abcdef"},
    "options": {"n_components": None, "whiten": True, "contrast": "logcosh", "dtype": None, "random_state": 0},
}


def keeper_of(folder, identity):
    return Keeper(folder, identity["input"], identity["options"])


@pytest.fixture
def point(rng):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Checkpoint(turn, np.array([1.0, -1.0, 1.0]), [0.5, 0.25, 0.1], "fixed point")


@pytest.fixture
def keeper(tmp_path):
    return keeper_of(tmp_path, IDENTITY)


def test_a_checkpoint_of_several_starts_comes_back_exactly(keeper, point, tmp_path):
    other = replace(point, gradients=[0.3], stage="climb")
    keeper.keep(replace(point, race=(other, point)))
    found = keeper_of(tmp_path, IDENTITY).read()
    assert [c.stage for c in found.race] == ["climb", "fixed point"] and found.tried is None
    assert [c.gradients for c in (found, *found.race)] == [point.gradients, [0.3], point.gradients]
    tried = Tried(np.stack([point.rotation, point.rotation[::-1]]), np.array([2.0, 1.0]))
    keeper.keep(replace(point, tried=tried))
    found = keeper_of(tmp_path, IDENTITY).read()
    assert found.race == ()
    np.testing.assert_array_equal(found.tried.rotations, tried.rotations)
    np.testing.assert_array_equal(found.tried.contrasts, tried.contrasts)


@pytest.mark.parametrize("passes", [2, 11, 25])
def test_a_fit_that_was_interrupted_among_its_starts_has_the_same_recurrence(x, tmp_path, passes):
    whole, _ = run(tmp_path / "whole", x)
    with pytest.raises(Stop):
        run(tmp_path / "out", x, progress=stopping_after(passes))
    found, _ = run(tmp_path / "out", x)
    np.testing.assert_array_equal(found.recurrence_, whole.recurrence_)
    np.testing.assert_allclose(found.components_, whole.components_, atol=1e-4 * np.abs(whole.components_).max())


def test_a_checkpoint_comes_back_exactly(keeper, point, tmp_path):
    assert keeper.read() is None
    keeper.keep(point)
    found = keeper_of(tmp_path, IDENTITY).read()
    np.testing.assert_array_equal(found.rotation, point.rotation)
    np.testing.assert_array_equal(found.signs, point.signs)
    assert found.gradients == point.gradients and found.stage == point.stage
    assert os.listdir(tmp_path) == ["checkpoint.safetensors"]
    keeper.remove()
    assert os.listdir(tmp_path) == []


def test_fast_passes_are_not_all_written_but_the_last_can_be(keeper, point, monkeypatch):
    clock = [0.0]
    monkeypatch.undo()
    monkeypatch.setattr("nearid.base.resume.time.monotonic", lambda: clock[0])
    seen = []
    for passes, now in enumerate((0.0, 0.1, 0.5, 1.2, 1.3), start=1):
        clock[0] = now
        keeper.keep(Checkpoint(point.rotation, point.signs, [0.5] * passes, point.stage))
        seen.append(len(keeper.read().gradients))
    assert seen == [1, 1, 1, 4, 4]
    keeper.flush()
    assert len(keeper.read().gradients) == 5


@pytest.mark.parametrize(
    ("part", "name", "value", "words"),
    [
        ("input", "digest", "fedcba9876543210", "input digest was '0123456789abcdef'"),
        ("input", "shape", [501, 4], r"input shape was \[500, 4\], now \[501, 4\]"),
        ("options", "contrast", "cube", "options contrast was 'logcosh', now 'cube'"),
        ("options", "random_state", 1, "options random_state was 0, now 1"),
        ("options", "whiten", False, "options whiten was True, now False"),
    ],
)
def test_another_fit_is_refused(keeper, point, tmp_path, part, name, value, words):
    keeper.keep(point)
    other = {**IDENTITY, part: {**IDENTITY[part], name: value}}
    with pytest.raises(InputError, match=f"unfinished fit of something else: {words}.*--restart"):
        keeper_of(tmp_path, other).read()


def rewrite(keeper, change=lambda tensors: None, **metadata):
    """Write the checkpoint again with other numbers or texts."""
    tensors = load_file(keeper.path)
    change(tensors)
    told = {"nearid_checkpoint": "2", "identity": json.dumps(IDENTITY), "stage": json.dumps(["fixed point"])}
    keeper.path.write_bytes(save(tensors, {**told, **metadata}))


def spoil(tensors):
    tensors["gradients"][1] = np.inf


def shear(tensors):
    tensors["rotation"][0] *= 1.5


def dim(tensors):
    tensors["signs"][0] = 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda k: k.path.write_bytes(k.path.read_bytes()[:50]), "not a checkpoint of nearid unmix, or it is damaged"),
        (lambda k: k.path.write_bytes(k.path.read_bytes()[:-8]), "not a whole safetensors file"),
        (lambda k: k.path.write_bytes(b""), "not a checkpoint of nearid unmix, or it is damaged"),
        (lambda k: k.path.write_bytes(pickle.dumps(os.system)), "not a checkpoint of nearid unmix, or it is damaged"),
        (lambda k: os.truncate(k.path, 1 << 40), "truncated, or not the right file"),
        (lambda k: rewrite(k, nearid_checkpoint="3"), "not a checkpoint that this version of nearid can read"),
        (lambda k: rewrite(k, stage="coffee"), "not a checkpoint that this version of nearid can read"),
        (lambda k: rewrite(k, stage=json.dumps(["coffee"])), "not a checkpoint that this version of nearid can read"),
        (lambda k: rewrite(k, identity="[]"), "does not say of what"),
        (lambda k: rewrite(k, identity="{"), "does not say of what"),
        (lambda k: rewrite(k, lambda t: t.update(signs=np.ones(2))), "do not fit together"),
        (lambda k: rewrite(k, lambda t: t.pop("signs")), "do not fit together"),
        (lambda k: rewrite(k, lambda t: t.update(rotation=np.eye(5), signs=np.ones(5))), "contains no rotation"),
        (lambda k: rewrite(k, lambda t: t.update(rotation=np.full((3, 3), 1e300))), "contains no rotation"),
        (lambda k: rewrite(k, spoil), "NaN or infinity in gradients"),
        (lambda k: rewrite(k, shear), "contains no rotation"),
        (lambda k: rewrite(k, dim), "contains no rotation"),
    ],
)
def test_damaged_checkpoints_are_told(keeper, point, damage, words):
    keeper.keep(point)
    damage(keeper)
    with pytest.raises(InputError, match=words):
        keeper.read()


def test_a_column_of_blocks_is_not_unmixed(x, tmp_path, nearid):
    pd = pytest.importorskip("pandas")
    wells = np.repeat(np.arange(30), 100)
    pd.DataFrame(x, columns=list("abcdef")).assign(well=wells).to_csv(tmp_path / "x.csv", index=False)
    found = unmix(tmp_path / "x.csv", tmp_path / "out", blocks="well", stability=1)
    assert found.n_features_in_ == 6 and found.provenance["options"]["blocks"] == "well"
    given = unmix(pd.DataFrame(x, columns=list("abcdef")), blocks=wells, stability=1)
    np.testing.assert_allclose(found.diagnostics_.stability, given.diagnostics_.stability, atol=1e-4)
    assert ICA.load(tmp_path / "out").provenance["options"]["blocks"] == "well"
    with pytest.raises(InputError, match=r"no column 'plate'.*'well'"):
        unmix(tmp_path / "x.csv", blocks="plate")
    nearid("unmix", "x.csv", "-o", "cli", "--blocks", "well", "--stability", "1")
    assert ICA.load(tmp_path / "cli").n_features_in_ == 6


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_frame_of_a_fit_without_its_metadata_is_transformed(rng, kind):
    frames = pytest.importorskip(kind)
    x = rng.laplace(size=(600, 3))
    columns = {"a": x[:, 0], "b": x[:, 1], "site": np.arange(600) % 4, "c": x[:, 2]}
    frame = frames.DataFrame(columns)
    model = unmix(frame, stability=1)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    components = np.asarray(model.transform(frame))
    np.testing.assert_allclose(components, np.asarray(model.transform(frame[["a", "b", "c"]])))
