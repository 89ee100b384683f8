"""InfoNCE: its definition, closed forms, and that minimising it finds the latents."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.contrastive import Contrastive, infonce  # noqa: E402
from nearid.lab.models.encoders import mlp  # noqa: E402


def as_published(anchors, positives, p, temperature):
    """The loss with its negatives: the batch rolled by one, against every anchor."""
    negatives = torch.roll(anchors, 1, 0)
    if p is None:
        matched, others = -(anchors * positives).sum(-1), -(anchors[:, None] * negatives).sum(-1)
    else:
        matched = (anchors - positives).abs().pow(p).sum(-1)
        others = (anchors[:, None] - negatives).abs().pow(p).sum(-1)
    everything = torch.cat([others, matched[:, None]], dim=1)
    return (matched / temperature + torch.logsumexp(-everything / temperature, dim=1)).mean()


@pytest.mark.parametrize("p", [None, 1, 2, 2.5, 3])
def test_is_the_published_loss(rng, p):
    pair = [torch.tensor(rng.normal(size=(11, 4)), requires_grad=True) for _ in range(2)]
    ours, theirs = infonce(*pair, p=p, temperature=0.3), as_published(*pair, p, 0.3)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    for a, b in zip(torch.autograd.grad(ours, pair), torch.autograd.grad(theirs, pair), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("p", [None, 1, 2, 3])
def test_equal_representations_give_the_log_of_all(p):
    same = torch.full((6, 3), 0.5)
    assert infonce(same, same, p=p).item() == pytest.approx(np.log(7), rel=1e-6)


def test_two_opposite_points_by_hand():
    anchors = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    # Each anchor sees itself (1), the other (-1) and its positive (1), at temperature 1/2.
    expected = np.log(2 * np.exp(2) + np.exp(-2)) - 2
    assert infonce(anchors, anchors, temperature=0.5).item() == pytest.approx(expected, rel=1e-12)
    # L1: distances 0, 2, 0.
    assert infonce(anchors, anchors, p=1).item() == pytest.approx(np.log(2 + np.exp(-2)), rel=1e-12)


def test_a_model_encodes_both_sides_alike(rng):
    x, y = (torch.tensor(rng.normal(size=(8, 3)), dtype=torch.float32) for _ in range(2))
    model = Contrastive(mlp(3, 2, [5]), 2, space="box", p=1)
    assert model(x, y).item() == pytest.approx(infonce(model.encode(x), model.encode(y), p=1).item(), rel=1e-5)


def test_half_precision_stays_inside_the_encoder(rng):
    x, y = (torch.tensor(rng.normal(size=(8, 3)), dtype=torch.float32) for _ in range(2))
    model = Contrastive(mlp(3, 2, [5]), 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.encoder(x).dtype == torch.bfloat16 and model.encode(x).dtype == torch.float32
        loss = model(x, y)
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(model(x, y).item(), abs=0.02)
    loss.backward()
    assert all(torch.isfinite(p.grad).all() and p.grad.dtype == torch.float32 for p in model.parameters())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"space": "box"}, "needs representations on a sphere"),
        ({"space": "torus"}, "no output space 'torus'"),
        ({"p": 0.5}, "p is 0.5"),
        ({"p": float("nan")}, "p is nan"),
        ({"temperature": 0}, "temperature is 0"),
    ],
)
def test_what_cannot_be_is_told(options, told):
    with pytest.raises(InputError, match=told):
        Contrastive(mlp(3, 2, [4]), 2, **options)


def test_pairs_must_fit():
    with pytest.raises(InputError, match=r"shape \(3, 2\) and positives \(2, 2\)"):
        infonce(torch.zeros(3, 2), torch.zeros(2, 2))
