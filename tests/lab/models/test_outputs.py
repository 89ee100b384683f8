"""Output spaces hold what they promise, and their parameters learn."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.lab.models.outputs import output  # noqa: E402

X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 5


def test_unbounded_changes_nothing():
    assert torch.equal(output("unbounded", 4)(X), X)


def test_spheres():
    torch.testing.assert_close(output("sphere", 4)(X).norm(dim=1), torch.ones(50))
    scaled = output("scaled sphere", 4)
    torch.testing.assert_close(scaled(X).norm(dim=1), torch.ones(50))
    with torch.no_grad():
        scaled.log_radius.fill_(1.0)
    torch.testing.assert_close(scaled(X).norm(dim=1), torch.full((50,), 2.7182817))
    assert not list(output("sphere", 4).parameters())


def test_box_has_sides_that_learn():
    box = output("box", 4)
    with torch.no_grad():
        box.sides.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    found = box(X)
    assert (found >= 0).all() and (found <= box.sides).all()
    torch.testing.assert_close(found, torch.sigmoid(X) * torch.tensor([1.0, 2.0, 3.0, 4.0]))
    found.sum().backward()
    torch.testing.assert_close(box.sides.grad, torch.sigmoid(X).sum(dim=0))
