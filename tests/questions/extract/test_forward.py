import pytest
import torch

from nearid.base.errors import InputError
from nearid.questions.extract.forward import Preprocess


def test_images_of_bytes_either_way_round():
    x = torch.randint(0, 256, (2, 6, 5, 3), dtype=torch.uint8)
    first = x.permute(0, 3, 1, 2)
    plain = Preprocess.of(None, None, None, None)
    for given in (x, first):
        torch.testing.assert_close(plain(given, torch.float32), first / 255)
    full = Preprocess.of(None, "0.5,0.4,0.3", [0.2, 0.3, 0.4], None)
    mean, std = torch.tensor([0.5, 0.4, 0.3])[:, None, None], torch.tensor([0.2, 0.3, 0.4])[:, None, None]
    torch.testing.assert_close(full(x, torch.float32), (first / 255 - mean) / std)
    said = Preprocess.of(1.0, None, None, "last")
    assert said(torch.zeros(2, 3, 4, 3, dtype=torch.uint8), torch.float64).shape == (2, 3, 3, 4)


def test_floats_and_tokens():
    plain = Preprocess.of(None, None, None, None)
    assert plain(torch.ones(2, 3, dtype=torch.float64), torch.float32).dtype == torch.float32
    assert plain(torch.ones(2, 3, dtype=torch.int32), torch.float32).dtype == torch.int64
    assert plain(torch.ones(2, 3), torch.float32).equal(torch.ones(2, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((None, None, "0.1,0", None), "numbers above 0"),
        ((None, "a", None, None), "mean is 'a', but one number"),
    ],
)
def test_bad_options_are_told(options, message):
    with pytest.raises(InputError, match=message):
        Preprocess.of(*options)


def test_what_cannot_be_told_apart_is_asked():
    plain = Preprocess.of(None, None, None, None)
    with pytest.raises(InputError, match="For pixels give scale=255"):
        plain.check("x", (5, 784), "uint8")
    Preprocess.of(255, None, None, None).check("x", (5, 784), "uint8")
    with pytest.raises(InputError, match=r"need an axis of channels: x\[:, None\]"):
        plain.check("x", (5, 28, 28), "uint8")
    with pytest.raises(InputError, match="mean has 2 numbers, but the inputs have 3 channels"):
        Preprocess.of(None, [1, 2], None, None)(torch.zeros(1, 3, 8, 8), torch.float32)


def test_floats_are_taken_as_they_are():
    """A feature map of four columns is no image with channels last."""
    maps = torch.randn(2, 16, 5, 4)
    assert Preprocess.of(None, None, None, None)(maps, torch.float32).equal(maps)
    assert Preprocess.of(None, None, None, "last")(maps, torch.float32).equal(maps.permute(0, 3, 1, 2))


def test_tokens_are_not_normalised():
    with pytest.raises(InputError, match="mean, std and channels are for images"):
        Preprocess.of(None, 3.0, None, None).check("x", (5, 3), "int64")
    Preprocess.of(None, None, None, None).check("x", (5, 3), "int64")
    Preprocess.of(255.0, 3.0, None, None).check("x", (5, 3), "int64")
