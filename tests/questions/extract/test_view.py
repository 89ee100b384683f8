"""An extraction as a result: the whole protocol."""

import json

import numpy as np
from torch import nn

from nearid import extract

X = np.arange(40, dtype=np.float32).reshape(10, 4)


def test_the_view_names_every_layer_with_its_width_and_file(tmp_path):
    made = extract(nn.Sequential(nn.Linear(4, 3), nn.Tanh()), X, out=tmp_path / "out")
    assert made.view.headline == f"2 layers of 10 rows, in {tmp_path / 'out'}"
    assert made.view.subject == "Sequential: 10 rows, pool mean" and "10 inputs of ndarray" in made.view.reason
    assert [row.cells for row in made.view.tables[0].rows] == [
        ["0", 3, "0.npy", "120 bytes"],
        ["1", 3, "1.npy", "120 bytes"],
    ]
    assert "0.npy" in str(made) and "0.npy" in made._repr_html_()
    assert list(made.plot()["data"][0]["x"]) == [3, 3]
    made.save_report(tmp_path / "out.html")


def test_as_plain_data_and_as_a_frame():
    made = extract(nn.Linear(4, 3), X)
    plain = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert plain["rows"] == 10 and plain["layers"] == {"output": {"shape": [10, 3], "dtype": "float32"}}
    assert plain["provenance"]["nearid"] == plain["provenance"]["versions"]["nearid"]
    assert plain["folder"] is None and plain["provenance"]["data"]["inputs"] == 10 and plain["alerts"] == []
    assert made.to_frame()["columns"].tolist() == [3] and repr(made) == (
        "<Extraction Linear: 10 rows, pool mean: 1 layer of 10 rows, in memory>"
    )
