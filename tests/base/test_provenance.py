"""What made a result."""

import json

import numpy as np

import nearid
from nearid.arrays import open_rows
from nearid.base.provenance import provenance


def test_versions_options_inputs_and_figures_of_the_question(tmp_path):
    x = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", x)
    path = str(tmp_path / "x.npy")
    made = provenance(
        {"folds": 5, "random_state": np.int64(3), "ridge": np.nan},
        [(path, open_rows(path)), (x, open_rows(x))],
        chance_rows=10,
    )
    json.dumps(made, allow_nan=False)
    assert made["nearid"] == nearid.__version__ and made["chance_rows"] == 10
    assert made["options"] == {"folds": 5, "random_state": 3, "ridge": None}
    of_file, of_array = made["inputs"]
    assert of_file["name"] == "x.npy" and of_file["source"] == path and of_file["shape"] == [4, 3]
    assert of_array["source"] == "ndarray" and of_array["fingerprint"] == of_file["fingerprint"]
