"""The sum over all pairs is that of plain autograd, in blocks, for every similarity."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from nearid.lab.models import similarity as module
from nearid.lab.models.similarity import (
    mean_log_partition,
    similarity,
)

POWERS = [None, 1, 1.5, 2, 3, 4]


def plain(rows, columns, p, temperature, extra):
    gaps = (rows[:, None] - columns).abs()
    logits = ((rows[:, None] * columns) if p is None else -gaps.pow(p)).sum(-1) / temperature
    if extra is not None:
        logits = torch.cat([logits, extra[:, None]], dim=1)
    return torch.logsumexp(logits, dim=1).mean()


def draws(seed, *shapes, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True) for shape in shapes]


@given(
    seed=st.integers(0, 10**6),
    r=st.integers(1, 9),
    c=st.integers(1, 9),
    n=st.integers(1, 5),
    p=st.sampled_from(POWERS) | st.floats(1, 6),
    temperature=st.floats(0.05, 20),
    block=st.integers(1, 40),
    more=st.booleans(),
)
def test_value_and_gradients_are_those_of_the_plain_sum(seed, r, c, n, p, temperature, block, more):
    given_ = draws(seed, (r, n), (c, n), r)
    extra = given_[2] if more else None
    inputs = given_ if more else given_[:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_CPU", block)
        found = mean_log_partition(given_[0], given_[1], similarity(p, temperature), extra)
    expected = plain(given_[0], given_[1], p, temperature, extra)
    assert found.item() == pytest.approx(expected.item(), rel=1e-10, abs=1e-10)
    ours, theirs = torch.autograd.grad(3 * found, inputs), torch.autograd.grad(3 * expected, inputs)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-9 * (1 + float(b.abs().max())))


@pytest.mark.parametrize("p", POWERS)
def test_gradcheck(p):
    given_ = draws(1, (6, 3), (5, 3), 6)
    assert torch.autograd.gradcheck(lambda r, c, e: mean_log_partition(r, c, similarity(p, 0.7), e), given_)


@pytest.mark.parametrize("p", POWERS)
def test_equal_points_have_no_gradient_and_columns_count(p):
    point = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    found = mean_log_partition(point, point, similarity(p)) - similarity(p).pairs(point, point).mean()
    assert found.item() == pytest.approx(np.log(4))
    assert torch.autograd.grad(found, point)[0].abs().max() < 1e-12


@pytest.mark.parametrize("p", POWERS)
def test_float32_is_near_float64(p):
    rows, columns = draws(2, (300, 10), (200, 10))
    exact = torch.autograd.grad(mean_log_partition(rows, columns, similarity(p)), (rows, columns))
    small = [t.detach().float().requires_grad_() for t in (rows + 5, columns + 5)]
    if p is None:
        small = [t.detach().float().requires_grad_() for t in (rows, columns)]
    rough = torch.autograd.grad(mean_log_partition(*small, similarity(p)), small)
    for a, b in zip(rough, exact, strict=True):
        assert float((a - b).abs().max() / b.abs().max()) < 2e-4


@pytest.mark.parametrize("p", [None, 1, 2, 3])
def test_far_points_neither_overflow_nor_vanish(p):
    rows, columns = draws(3, (5, 3), (4, 3), dtype=torch.float32)
    rows, columns = (100 * rows).detach().requires_grad_(), (100 * columns).detach().requires_grad_()
    found = mean_log_partition(rows, columns, similarity(p, 0.1))
    assert torch.isfinite(found)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(found, (rows, columns)))


@pytest.mark.parametrize("p", [1, 3])
def test_the_number_of_threads_changes_nothing(p):
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        rows, columns = draws(4, (64, 10), (500, 10), dtype=torch.float32)
        found.append(similarity(p).pull(rows.detach(), columns.detach(), torch.ones(64, 500)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_compiled_and_coordinatewise_agree(monkeypatch):
    for p in (1, 3):
        rows, columns = (t.detach() for t in draws(5, (7, 4), (9, 4)))
        weights = torch.rand(7, 9, dtype=torch.float64)
        compiled = (similarity(p).logits(rows, columns), *similarity(p).pull(rows, columns, weights))
        with monkeypatch.context() as patch:
            patch.setattr(module, "COMPILED_P", ())
            stepwise = (similarity(p).logits(rows, columns), *similarity(p).pull(rows, columns, weights))
        assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(compiled, stepwise, strict=True))
