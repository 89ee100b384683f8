"""Cross-entropy over instances or classes, against torch's own."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models import partition  # noqa: E402
from nearid.lab.models.cross_entropy import CrossEntropy  # noqa: E402
from nearid.lab.models.encoders import mlp  # noqa: E402


def batch(rng, labels=7):
    return torch.tensor(rng.normal(size=(20, 3)), dtype=torch.float32), torch.tensor(rng.integers(0, labels, 20))


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_and_gradients_are_torchs(rng, monkeypatch, features, weights, smoothing):
    monkeypatch.setattr(partition, "BLOCK_CPU", 30)
    x, labels = batch(rng)
    model = CrossEntropy(
        mlp(3, 2, [5]),
        2,
        7,
        beta=1.7,
        normalise_features=features,
        normalise_weights=weights,
        label_smoothing=smoothing,
    )
    ours = model(x, labels)
    theirs = torch.nn.functional.cross_entropy(
        1.7 * model.encode(x) @ model.weights.T, labels, label_smoothing=smoothing
    )
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
    parameters = list(model.parameters())
    for a, b in zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_normalised_means_length_one(rng):
    x, labels = batch(rng)
    model = CrossEntropy(mlp(3, 2, [5]), 2, 7, normalise_features=True, normalise_weights=True)
    with torch.no_grad():
        model.weights.mul_(3)
    model(x, labels)
    torch.testing.assert_close(model.weights.norm(dim=1), torch.ones(7))
    torch.testing.assert_close(model.encode(x).norm(dim=1), torch.ones(20))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"labels": 1}, "nothing to tell apart"),
        ({"labels": 3, "beta": 0}, "beta is 0"),
        ({"labels": 3, "label_smoothing": 1}, "label_smoothing is 1"),
    ],
)
def test_options_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        CrossEntropy(mlp(3, 2, [4]), 2, **options)


def test_labels_that_cannot_be(rng):
    x, labels = batch(rng)
    model = CrossEntropy(mlp(3, 2, [4]), 2, 7)
    with pytest.raises(InputError, match="run from 0 to 7, but there are 7"):
        model(x, torch.arange(20) % 8)
    with pytest.raises(InputError, match="whole numbers"):
        model(x, labels.float())
    with pytest.raises(InputError, match=r"shape \(19,\)"):
        model(x, labels[1:])
