"""Default layers and the files they are written to."""

import pytest
from torch import nn

from nearid.base.errors import InputError
from nearid.questions.extract.names import blocks, file_stems, split_part


def test_blocks_are_children_with_containers_opened(net):
    assert list(blocks(net)) == ["conv", "norm", "act", "stage.0", "stage.1", "head", "spare"]
    nested = nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU())), nn.Tanh())
    assert list(blocks(nested)) == ["0.0", "0.1.0", "1"]


def test_files_are_plain_distinct_and_leave_reserved_names():
    stems = file_stems(["a/b", "a b", "A_b", "ids", "../../etc", "relu#2", "x" * 300])
    assert len({s.lower() for s in stems.values()}) == 7
    assert stems["relu#2"] == "relu#2" and stems["ids"] == "ids_2"
    assert not any("/" in s or s.startswith(".") for s in stems.values())
    assert max(map(len, stems.values())) <= 124


def test_parts_of_outputs():
    assert split_part("lstm:1.0") == ("lstm", "1.0")
    assert split_part("conv") == ("conv", None)
    with pytest.raises(InputError, match="layer:part"):
        split_part("lstm:")
