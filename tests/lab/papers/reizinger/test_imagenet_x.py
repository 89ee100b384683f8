"""Probes of ImageNet-X: features of known decodability, images that find their annotations, claims that decide."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from nearid.base.errors import InputError
from nearid.lab.data.imagenet_x import FACTORS, load_annotations
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.reizinger.imagenet_x import IMAGENET_X, TARGETS, Parameters, Source, cell, paired, rows, sources

E = IMAGENET_X
# Images, and how far apart the features of those with a factor and those without are.
N, PLANTED = 4000, {"pose": 3.0, "darker": 2.0, "class": 2.0}


@pytest.fixture
def files(tmp_path, rng):
    """Annotations in their layout; features that tell three targets, in another order; and noise."""
    names = [f"ILSVRC2012_val_{k:08d}.JPEG" for k in range(1, N + 1)]
    table = {name: rng.random(N) < 0.3 for name in FACTORS}
    table["brighter"] = np.arange(N) < 5
    classes = rng.integers(0, 1000, N)
    with (tmp_path / "annotations.jsonl").open("w") as file:
        for k, name in enumerate(names):
            factors = {factor: int(table[factor][k]) for factor in FACTORS}
            file.write(json.dumps({"file_name": name, "class": int(classes[k]), **factors}) + "\n")
    answers = table | {"class": classes >= 500}
    x = rng.normal(size=(N, 8)).astype(np.float32)
    noise = rng.normal(size=(N, 8)).astype(np.float32)
    for k, (name, strength) in enumerate(PLANTED.items()):
        x[:, k] += strength * answers[name]
    order = rng.permutation(N)
    # With folders and without suffixes, as programs name images; and one that is not annotated.
    ids = np.array([f"val/n{k}/{names[k].removesuffix('.JPEG')}" for k in order] + ["val/other"])
    for name, rows_ in (("known", x), ("noise", noise)):
        np.savez(tmp_path / f"{name}.npz", x=np.vstack([rows_[order], rows_[:1]]), ids=ids)
    return tmp_path


def settings(files, features, **more):
    given = {"features": features, "annotations": str(files / "annotations.jsonl"), "ids": "ids"} | more
    return {name: value.format(files) for name, value in given.items()}


def test_planted_factors_decode_at_the_best_accuracy_and_noise_at_chance(files):
    p = parameters_for(E, "cpu", settings(files, "{0}/known.npz:x"))
    data = cell(changed(p, rows(p)[0].changes), 0, files)
    found = data["scores"]
    # One in 4000: the row that is no annotated image is left out.
    assert found["images"] == N and "brighter" not in found
    assert data["views"]["judged"]["pose"] == pytest.approx(2 * 0.3 * 0.3 * N, rel=0.1)
    for name in TARGETS:
        if name != "brighter":
            expected = 100 * ndtr(PLANTED.get(name, 0) / 2)
            assert found[name] == pytest.approx(expected, abs=6 if name not in PLANTED else 5), name


def test_a_run_decides_claims_and_has_a_figure(files, inline):
    given = settings(files, "good={0}/known.npz:x", baselines="plain={0}/noise.npz:x")
    found = reproduce(E, files / "out", seeds=6, parameters=given)
    assert not found.failures and [row.key for row in found.rows] == ["good", "plain"]
    most, easy = (o for _, o in found.outcomes)
    # Three targets are planted of seventeen, and none in noise.
    assert str(most.status) == "not reproduced" and "good: 3 of 16 decode above chance (p < 0.00059;" in most.sentence
    assert "pose 9" in most.sentence and "±" in most.sentence
    assert str(easy.status) == "not testable here" and "too few images" in easy.sentence
    [slot] = E.figures(found)
    assert slot.rows == ["good", "plain"] and slot.columns == TARGETS and "pose" in str(found)


def told(p, accuracy, seeds=10, judged=1000):
    rng = np.random.default_rng(0)
    cells = []
    for c in cells_of(E, p, range(seeds)):
        scores = {name: accuracy(c.row.key, name) + rng.normal() for name in TARGETS}
        views = {"judged": dict.fromkeys(TARGETS, judged)}
        cells.append(Finished(c, {"scores": scores, "views": views}, 1.0, 1.0, {}))
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(seeds), cells, (), {}).outcomes]


def test_claims_decide(files):
    p = parameters_for(E, "cpu", settings(files, "a={0}/known.npz:x", baselines="b={0}/noise.npz:x"))
    few, easy = TARGETS[:8], ("darker", "brighter")
    yes, no, open_ = "reproduced", "not reproduced", "not testable here"
    assert told(p, lambda row, name: 60) == [yes, yes]
    assert told(p, lambda row, name: 60 if row == "a" and name in few else 50) == [no, no]
    assert told(p, lambda row, name: 60 if row == "a" or name in easy else 50) == [yes, yes]
    # Below chance is no decoding, and one split is no test.
    assert told(p, lambda row, name: 40) == [no, no] and told(p, lambda row, name: 60, seeds=1) == [open_, open_]
    # What is judged on few images does not decide, however alike the splits are.
    assert told(p, lambda row, name: 60, judged=20) == [no, no]
    assert told(replace(p, baselines=""), lambda row, name: 60) == [yes, open_]


def test_more_files_leave_the_cells_of_the_others(files):
    alone, more = (
        cells_of(E, parameters_for(E, "cpu", settings(files, text)), range(1))[0]
        for text in ("{0}/known.npz:x", "{0}/known.npz:x,{0}/noise.npz:x")
    )
    assert alone.identity == more.identity


def one_number(held, lines):
    held["x"][5, 2] += 1


def names_of_two_images(held, lines):
    held["ids"][[3, 4]] = held["ids"][[4, 3]]


def one_annotation(held, lines):
    told = json.loads(lines[7])
    lines[7] = json.dumps({**told, "pose": 1 - told["pose"]}) + "\n"


@pytest.mark.parametrize("change", [one_number, names_of_two_images, one_annotation])
def test_other_contents_are_another_cell(files, change):
    p = parameters_for(E, "cpu", settings(files, "{0}/known.npz:x"))
    [before], [again] = cells_of(E, p, range(1)), cells_of(E, p, range(1))
    assert before.identity == again.identity
    with (files / "annotations.jsonl").open() as file:
        lines = file.readlines()
    held = dict(np.load(files / "known.npz"))
    change(held, lines)
    np.savez(files / "known.npz", **held)
    (files / "annotations.jsonl").write_text("".join(lines))
    # In the same process, with the same parameters.
    [other] = cells_of(E, p, range(1))
    assert before.parameters.source == other.parameters.source and before.name != other.name
    assert Source.of(other.parameters.source).path == str(files / "known.npz")
    # What was planned before is not computed from what is there now.
    with pytest.raises(InputError, match="have changed since the run began: run the same command again"):
        cell(before.parameters, 0, files)


def test_rows_that_are_not_probed_leave_the_cell(files):
    p = parameters_for(E, "cpu", settings(files, "{0}/known.npz:x"))
    [before] = cells_of(E, p, range(1))
    held = dict(np.load(files / "known.npz"))
    held["x"][-1] += 1
    np.savez(files / "known.npz", **held)
    assert cells_of(E, p, range(1))[0].identity == before.identity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/resnet.npy", ("resnet", "a/resnet.npy", None)),
        ("a/out:layer4.1", ("out-layer4.1", "a/out", "layer4.1")),
        ("vit b=a/f.npz:cls", ("vit_b", "a/f.npz", "cls")),
        ("a/k=3/f.npy", ("f", "a/k=3/f.npy", None)),
    ],
)
def test_features_as_they_are_named(text, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/out").mkdir(parents=True)
    (tmp_path / "a/f.npz").touch()
    found = Source.of(text)
    assert (found.name, found.path, found.key) == expected


def test_what_is_missing_is_told_before_anything_begins(files):
    with pytest.raises(InputError, match=r"needs features .* nearid extract .* --set features=resnet50="):
        reproduce(E, files / "out", preset="smoke")
    assert not (files / "out").exists() and rows(Parameters()) == []


@pytest.mark.parametrize(
    ("features", "more", "words"),
    [
        ("{0}/known.npz:x,{0}/known.npz:x", {}, "Two files of features are named 'known-x'"),
        ("{0}/known.npz:x", {"baselines": "known-x={0}/noise.npz:x"}, "Two files of features are named 'known-x'"),
        ("{0}/known.npz:x", {"ids": ""}, "have no ids, so nothing says which image"),
        ("{0}/strange.npz:x", {}, r"0 of the 4001 rows of .*strange.* \(such as 'image0'\)"),
        ("{0}/twice.npz:x", {}, "more than one row in"),
        ("{0}/none.npy", {}, "There is no file named 'none.npy'"),
        ("{0}/known.npz:x", {"factors": "all"}, "factors must be top or multi"),
    ],
)
def test_what_does_not_belong_together_is_refused(files, features, more, words):
    held = np.load(files / "known.npz")["x"]
    np.savez(files / "strange.npz", x=held, ids=np.array([f"image{k}" for k in range(len(held))]))
    np.savez(files / "twice.npz", x=held, ids=np.array(["ILSVRC2012_val_00000001.JPEG"] * len(held)))
    with pytest.raises(InputError, match=words):
        reproduce(E, files / "out", parameters=settings(files, features, **more))
    assert not (files / "out").exists()


def test_rows_are_paired_by_name(files):
    p = parameters_for(E, "cpu", settings(files, "{0}/known.npz:x"))
    found = paired(p, sources(p)[0], load_annotations(p.annotations))
    held = np.load(files / "known.npz")
    for k in (0, 17, N - 1):
        name = found.annotations.images[found.place[k]]
        [row] = [i for i, text in enumerate(held["ids"]) if text.endswith(name)]
        np.testing.assert_array_equal(found.features()[k], held["x"][row])


def test_infinite_features_are_refused(files):
    held = dict(np.load(files / "known.npz"))
    held["x"][3, 2] = np.inf
    np.savez(files / "known.npz", **held)
    p = parameters_for(E, "cpu", settings(files, "{0}/known.npz:x"))
    with pytest.raises(InputError, match="a NaN or an infinity"):
        cell(changed(p, rows(p)[0].changes), 0, files)
