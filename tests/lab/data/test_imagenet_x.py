"""Annotations of ImageNet-X: the layout of the package, files of the user, and what is refused."""

import csv
import json

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data import imagenet_x
from nearid.lab.data.imagenet_x import FACTORS, image_name, load_annotations


def line(name, number=0, **factors):
    return {"file_name": name, "class": number, **dict.fromkeys(FACTORS, 0), **factors, "justification": "a word"}


def write(path, lines):
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return str(path)


LINES = [line("ILSVRC2012_val_00000003.JPEG", 999, pose=1), line("ILSVRC2012_val_00000001.JPEG", 4, darker=1, style=1)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ILSVRC2012_val_00000293.JPEG", "ILSVRC2012_val_00000293"),
        ("/data/val/n01440764/ILSVRC2012_val_00000293.JPEG", "ILSVRC2012_val_00000293"),
        (r"C:\val\a.png", "a"),
        ("n03633091_15528", "n03633091_15528"),
        ("v1.2", "v1.2"),
        (17, "17"),
    ],
)
def test_images_are_named_without_folder_and_suffix(text, name):
    assert image_name(text) == name


def test_lines_of_json(tmp_path):
    found = load_annotations(write(tmp_path / "a.jsonl", LINES))
    assert found.images.tolist() == ["ILSVRC2012_val_00000003", "ILSVRC2012_val_00000001"]
    assert found.classes.tolist() == [999, 4]
    assert found.factors["pose"].tolist() == [True, False] and found.factors["style"].tolist() == [False, True]
    assert list(found.factors) == list(FACTORS) and len(FACTORS) == 16


def test_a_table_says_the_same(tmp_path):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, LINES[0])
        writer.writeheader()
        writer.writerows(LINES)
    one, other = load_annotations(str(tmp_path / "a.csv")), load_annotations(write(tmp_path / "a.jsonl", LINES))
    assert one.digest == other.digest and one.images.tolist() == other.images.tolist()
    other = load_annotations(write(tmp_path / "b.jsonl", [LINES[0], {**LINES[1], "pose": 1}]))
    assert one.digest != other.digest


def test_the_package_is_found_and_not_imported(tmp_path, monkeypatch):
    folder = tmp_path / "imagenet_x" / "annotations"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "prototypical_paths.csv").write_text("file_name\nILSVRC2012_val_00000009.JPEG\n")
    lines = [*LINES, line("ILSVRC2012_val_00000009.JPEG", pose=1)]
    write(folder / "imagenet_x_val_top_factor.jsonl", lines)
    write(folder / "imagenet_x_val_multi_factor.jsonl", [{**each, "color": 1} for each in lines])
    monkeypatch.syspath_prepend(tmp_path)
    found = load_annotations()
    # Without the prototype.
    assert found.images.tolist() == ["ILSVRC2012_val_00000003", "ILSVRC2012_val_00000001"]
    assert not found.factors["color"].any() and load_annotations(selection="multi").factors["color"].all()


@pytest.mark.parametrize("held", [None, b"", b"name\nx\n", b"file_name\n\xff\n"])
def test_a_package_without_its_prototypes(tmp_path, monkeypatch, held):
    monkeypatch.setattr(imagenet_x, "package_folder", lambda: tmp_path)
    write(tmp_path / "imagenet_x_val_top_factor.jsonl", LINES)
    if held is not None:
        (tmp_path / "prototypical_paths.csv").write_bytes(held)
    with pytest.raises(InputError, match=r"damaged: .* cannot be read from .*prototypical_paths.csv.* --set annot"):
        load_annotations()


def test_without_the_package_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(imagenet_x, "PACKAGE", "no_such_package")
    with pytest.raises(InputError, match=r"pip install imagenet-x .* --set annotations=FILE"):
        load_annotations()


def test_the_real_annotations():
    if imagenet_x.package_folder() is None:
        pytest.skip("the package imagenet-x is not installed")
    top, multi = load_annotations(), load_annotations(selection="multi")
    np.testing.assert_array_equal(top.images, multi.images)
    # 48,868 validation images less 2758 prototypes; each has one factor at most, and keeps it among all its factors.
    assert len(top.images) == 46_110
    counts = np.sum(list(top.factors.values()), axis=0)
    assert counts.max() == 1 and (counts == 0).sum() <= 2
    assert all((multi.factors[name] | ~top.factors[name]).all() for name in FACTORS)
    assert 0.45 < (top.classes >= 500).mean() < 0.55


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "", "lines of JSON"),
        ("a.jsonl", "not JSON\n", "cannot be read as annotations"),
        ("a.jsonl", "[" * 100_000, "cannot be read as annotations"),
        ("a.jsonl", "[1, 2]\n", "Line 1 of a.jsonl lacks file_name, class"),
        ("a.jsonl", json.dumps(LINES[0]) + "\n" + json.dumps({**LINES[1], "pose": 2}) + "\n", "Line 2 .* not 0 or 1"),
        ("a.jsonl", json.dumps({**LINES[0], "class": 1000}) + "\n", "class that is not from 0 to 999"),
        ("a.jsonl", json.dumps({**LINES[0], "class": None}) + "\n", "class that is not from 0 to 999"),
        ("a.jsonl", json.dumps({**LINES[0], "class": 499.9}) + "\n", "class that is not from 0 to 999"),
        ("a.jsonl", json.dumps({**LINES[0], "pose": 0.7}) + "\n", "not 0 or 1"),
        ("a.jsonl", json.dumps({**LINES[0], "pose": float("inf")}) + "\n", "not 0 or 1"),
        ("a.jsonl", json.dumps({**LINES[0], "pose": 10**400}) + "\n", "not 0 or 1"),
        ("a.jsonl", '{"class": ' + "9" * 5000 + "}\n", "cannot be read as annotations"),
        ("a.jsonl", json.dumps({**LINES[0], "file_name": [0]}) + "\n", "Line 1 .* a file_name that is not text"),
        ("a.jsonl", 2 * (json.dumps(LINES[0]) + "\n"), "several lines for the same image"),
        ("a.jsonl", json.dumps(LINES[0]) + "\n", "annotates 1 images"),
        ("a.csv", "file_name,class\nx,1\n", "Line 2 of a.csv lacks pose"),
    ],
)
def test_other_files_are_refused(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        load_annotations(str(tmp_path / name))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        load_annotations(str(tmp_path / "none.jsonl"))
