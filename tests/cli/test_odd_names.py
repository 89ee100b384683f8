"""Names that are markup, very long, invisible or written from right to left, in every command that prints names."""

import re

import numpy as np
import pandas as pd
import pytest

# What moves the cursor, begins a line or turns the letters: controls but for the end of a line, marks of direction,
# separators of lines and paragraphs, tags.
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0001]")
NAMES = {
    "markup": "[red]a[/red] [/] [link=http://e]b :smile:",
    "ansi": "\x1b[31mred\x1b[0m\x1b]8;;http://e\x07",
    "lines": "a\nb\r\tc\u2028d\u2029e\x85f",
    "right to left": "\u202ertl\u2066\u200f\u061c\u2069",
    "invisible": "a\u200b\u200d\ufeff\U000e0001b",
    "emoji": "\U0001f9ec\U0001f525" * 20,
    "long": "L" * 10_000,
    "surrogate": "x\ud83dy",
}
QUICK = ("--classifiers", "logistic", "--folds", "2", "--conditions", "base,ica", "--top", "0", "--directions", "most")
CALLS = [
    (("compare", "x.parquet", "u.npy", "--permutations", "1", "--report", "r.html"), 0),
    (("compare", "x.parquet", "u.npy", "--exclude", "other"), 2),
    (("compare", "{file}", "{file}", "u.npy", "--permutations", "1"), 0),
    (("compare", "no {name}", "u.npy"), 2),
    (("score", "u.npy", "x.parquet", "--measures", "mcc,r2", "--permutations", "1", "--report", "r.html"), 0),
    (("score", "u.npy", "x.parquet", "--kinds", "other=none"), 2),
    (("unmix", "x.parquet", "-o", "out", "--report", "r.html"), 0),
    (("deconfound", "plates.parquet", "--labels", "drug", "--batches", "plate", *QUICK), 0),
    (("deconfound", "plates.parquet", "--labels", "drug", "--batches", "other"), 2),
    (("reproduce", "{name}"), 2),
    (("{name}",), 2),
]


# Half of a character of two halves is no name in a file, but somebody may type it.
TRIED = [
    (kind, k)
    for kind in NAMES
    for k, (words, _) in enumerate(CALLS)
    if kind != "surrogate" or not re.search(r"parquet|\{file\}", " ".join(words))
]


@pytest.mark.parametrize(("kind", "call"), TRIED, ids=[f"{kind} {k} {CALLS[k][0][0]}" for kind, k in TRIED])
def test_a_name_is_text_and_nothing_else(tmp_path, nearid, kind, call):
    name, (words, code) = NAMES[kind], CALLS[call]
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(60, 2))
    file = name.replace("/", "")[:40] + ".npy"
    np.save(tmp_path / "u.npy", x)
    if "{file}" in words:
        np.save(tmp_path / file, x)
    if "parquet" in " ".join(words):
        frame = pd.DataFrame(x, columns=[f"{name}0", f"{name}1"])
        frame.to_parquet(tmp_path / "x.parquet")
        drugs = np.array(["DMSO", name])[np.arange(60) % 2]
        plates = [f"{name}{k}" for k in np.arange(60) // 10]
        frame.assign(drug=drugs, plate=plates).to_parquet(tmp_path / "plates.parquet")
    done = nearid(*(word.replace("{name}", name).replace("{file}", file) for word in words), columns=60)
    printed = done.stdout + done.stderr
    assert done.returncode == code, printed[-2000:]
    assert HARMFUL.findall(printed) == []
    # A name of 10,000 letters does not fill the terminal.
    assert len(printed.splitlines()) < 400
