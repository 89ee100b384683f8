"""Texts from every file and table give the same texts, ids and hash; what is no text is told."""

import json

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.questions.extract.texts import Texts, open_texts

LINES = ["a cat", "", "der schöne Hund", "  ", "日本語", "a cat"]
KEPT = ["a cat", "der schöne Hund", "日本語", "a cat"]


def test_every_form_gives_the_same(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pd = pytest.importorskip("pandas")
    (tmp_path / "t.txt").write_text("\n".join(LINES), encoding="utf-8")
    (tmp_path / "end.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*LINES, ""]).encode())
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"n": 1, "text": line}) for line in LINES))
    (tmp_path / "plain.jsonl").write_text(
        "\n".join(json.dumps(line, ensure_ascii=False) for line in LINES), encoding="utf-8"
    )
    frame = pd.DataFrame({"n": range(6), "text": LINES, "body": LINES})
    frame.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.table({"n": np.arange(6), "text": LINES, "body": LINES}), tmp_path / "t.parquet")
    forms = [
        LINES,
        tuple(LINES),
        np.array(LINES),
        np.array(LINES, object),
        pd.Series(LINES),
        frame,
        [line or None for line in LINES],
        tmp_path / "t.txt",
        tmp_path / "end.txt",
        tmp_path / "t.jsonl",
        tmp_path / "plain.jsonl",
        tmp_path / "t.csv",
        tmp_path / "t.parquet",
    ]
    found = [open_texts(form) for form in forms]
    found += [open_texts(form, "body") for form in (frame, tmp_path / "t.csv", tmp_path / "t.parquet")]
    for texts in found:
        assert texts.texts == KEPT and texts.ids.tolist() == [0, 2, 4, 5]
        assert [alert.code for alert in texts.alerts] == ["empty_texts", "repeated_texts"]
    assert len({texts.digest() for texts in found}) == 1
    # The hash tells where one text ends and the next begins.
    assert Texts("t", ["ab", "c"]).digest() != Texts("t", ["a", "bc"]).digest()


def test_a_saved_data_set_needs_no_library(tmp_path):
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict({"text": LINES, "key": [f"k{at}" for at in range(6)]})
    whole.save_to_disk(tmp_path / "set")
    found = open_texts(tmp_path / "set", ids="key")
    assert found.texts == KEPT and found.ids.tolist() == ["k0", "k2", "k4", "k5"]
    assert open_texts(whole).digest() == found.digest()
    datasets.DatasetDict({"train": whole}).save_to_disk(tmp_path / "several")
    with pytest.raises(InputError, match="several data sets: train"):
        open_texts(tmp_path / "several")
    state = tmp_path / "set" / "state.json"
    told = json.loads(state.read_text())
    for outside in ("../several/train/data-00000-of-00001.arrow", "..", ".", ""):
        told["_data_files"][0]["filename"] = outside
        state.write_text(json.dumps(told))
        with pytest.raises(InputError, match="outside of the folder"):
            open_texts(tmp_path / "set")


def test_ids_by_column_index_and_file(tmp_path):
    pd = pytest.importorskip("pandas")
    (tmp_path / "t.csv").write_text("name,text\n007,a b\n010,c d\n")
    assert open_texts(tmp_path / "t.csv", ids="name").ids.tolist() == ["007", "010"]
    assert open_texts(pd.Series(["a b", "c d"], index=["x", "y"])).ids.tolist() == ["x", "y"]
    np.save(tmp_path / "ids.npy", np.array([7, 9]))
    assert open_texts(["a b", "c d"], ids=tmp_path / "ids.npy").ids.tolist() == [7, 9]
    (tmp_path / "t.jsonl").write_text('{"text": "a", "k": 3}\n\n{"text": "b", "k": 5}\n')
    assert open_texts(tmp_path / "t.jsonl", ids="k").ids.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.txt", b"", {}, "has no text"),
        ("t.txt", b"\n \n", {}, "has no text"),
        ("t.txt", b"one\n\n", {}, "1 text beside 1 empty ones"),
        ("t.txt", b"one\nt\0o\n", {}, "zero byte in line 2"),
        ("t.txt", b"one\ncaf\xe9\n", {}, "Line 2 of t.txt is not UTF-8: byte 4 is 0xe9"),
        ("t.txt", "a\nb".encode("utf-16"), {}, "UTF-16"),
        ("t.txt", b"a\nb", {"column": "text"}, "no columns"),
        ("t.txt", b"a\nb", {"ids": "key"}, "no file and no column key"),
        ("t.txt", b"a\nb", {"ids": [1, 1]}, "more than once"),
        ("t.txt", b"a\n\nb", {"ids": [1, 2]}, "one id for each of its 3 rows"),
        ("t.jsonl", b'{"text": "a"}\n{"text"', {}, "Line 2 of t.jsonl is not JSON"),
        ("t.jsonl", b'{"text": "a"}\n[1]', {}, "Line 2 of t.jsonl is a list"),
        ("t.jsonl", b'{"a": "x", "b": "y"}\n{"a": "z", "b": "w"}', {}, "Name the column with the texts"),
        ("t.jsonl", b'{"text": "x"}\n{"text": 3}', {}, "Entry 1 of t.jsonl is an int"),
        ("t.csv", b"id,sentence\n1,a b\n2,c d\n", {}, "columns of text: 'sentence'"),
        ("t.csv", b"id,sentence\n1,a b\n2,c d\n", {"column": "sentense"}, "Did you mean 'sentence'"),
    ],
)
def test_what_is_no_text_is_told(tmp_path, name, content, options, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_texts(tmp_path / name, **options)


@pytest.mark.parametrize("name", ["words", "a;b"])
def test_the_only_column_of_a_table_may_begin_with_a_gap(tmp_path, name):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({name: [None, "a b", "c d"]}), tmp_path / "t.parquet")
    found = open_texts(tmp_path / "t.parquet")
    assert found.texts == ["a b", "c d"] and found.ids.tolist() == [1, 2]


@pytest.mark.parametrize("column", [None, "text"])
@pytest.mark.parametrize(
    ("name", "mark", "message"),
    [
        ("t.csv", ";", "separated by semicolons, but commas are expected"),
        ("t.csv", "\t", "separated by tabs, but commas are expected"),
        ("t.tsv", ";", "separated by semicolons, but tabs are expected"),
    ],
)
def test_other_delimiters_are_refused(tmp_path, name, mark, message, column):
    (tmp_path / name).write_text(f"text{mark}id\na b{mark}3\nc d{mark}4\n")
    with pytest.raises(InputError, match=message):
        open_texts(tmp_path / name, column)
    # As somebody may mean it.
    assert open_texts(tmp_path / name, f"text{mark}id").texts == [f"a b{mark}3", f"c d{mark}4"]


def test_arrays_are_no_texts(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    for data in (
        np.zeros((3, 2)),
        [[1, 2], [3, 4]],
        [1, 2],
        {"text": ["a", "b"]},
        tmp_path / "x.npy",
        tmp_path / "x.csv",
    ):
        assert open_texts(data) is None
    with pytest.raises(InputError, match="not a table"):
        open_texts(np.zeros((3, 2)), "text")
    with pytest.raises(InputError, match="Entry 1 of list is a float"):
        open_texts(["a", 1.5, "b"])
    with pytest.raises(InputError, match="an invalid character"):
        open_texts(["a", "b\ud800"])
