"""Images are checked before a network takes them."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.autoencoders.networks import check_images  # noqa: E402


def test_images_come_channels_first():
    check_images(torch.zeros(0, 3, 8, 8), 3, 8)
    with pytest.raises(InputError, match=r"\(2, 8, 8, 3\), but \(rows, 3, 8, 8\) is expected"):
        check_images(torch.zeros(2, 8, 8, 3), 3, 8)
