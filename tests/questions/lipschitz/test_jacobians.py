"""Directional derivatives: every kind of decoder against closed forms or autograd, and sentences for the rest."""

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import jacrev, vmap

import nearid
from nearid.base.errors import InputError
from nearid.questions.lipschitz.jacobians import check_finite, tried

D = 4


class Square(torch.autograd.Function):
    """x^2 with a derivative by hand, which has no forward mode."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(2, 2, 4, batch_first=True)

    def forward(self, z):
        return self.layer(z.unflatten(1, (2, 2)))


def fused(z):
    q = z.unflatten(1, (1, 2, 2))
    return nn.functional.scaled_dot_product_attention(q, q, q)


def decoders():
    torch.manual_seed(0)
    images = nn.Sequential(nn.Linear(D, 16), nn.Unflatten(1, (1, 4, 4)), nn.ConvTranspose2d(1, 2, 4, 2, 1), nn.GELU())
    return {
        "linear": (nn.Linear(D, 6), "forward"),
        "images": (images, "forward"),
        "batch norm": (nn.Sequential(nn.BatchNorm1d(D), nn.Tanh()), "forward"),
        "dropout": (nn.Sequential(nn.Dropout(0.5), nn.Softplus()), "forward"),
        "fused attention": (fused, "forward"),
        "transformer": (Attention(), "reverse"),
        "by hand": (lambda z: Square.apply(z), "reverse"),
        "not tracked": (torch.no_grad()(lambda z: z.sin()), "forward"),
    }


@pytest.mark.parametrize("name", decoders())
def test_derivatives_are_those_of_autograd(name):
    decoder, mode = decoders()[name]
    if isinstance(decoder, nn.Module):
        decoder.double()
    z = np.random.default_rng(0).normal(size=(5, D))
    v = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 5, D)))
    with tried(decoder, z) as known:
        out, pushed = known.push(known.latents(z), v)
        assert known.mode == mode and known.dtype == torch.float64
    plain = decoders()[name][0]
    if isinstance(plain, nn.Module):
        plain.double().eval()
    if name == "by hand":
        jacobians = torch.diag_embed(2 * torch.from_numpy(z))
    elif name == "not tracked":
        jacobians = torch.diag_embed(torch.from_numpy(z).cos())
    else:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            jacobians = vmap(jacrev(lambda row: plain(row[None]).flatten()))(torch.from_numpy(z))
            torch.testing.assert_close(out, plain(torch.from_numpy(z)).flatten(1))
    torch.testing.assert_close(pushed, torch.einsum("nmd,knd->knm", jacobians, v))


def test_modes_of_modules_are_restored_one_by_one():
    decoder = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(D))
    decoder.train()
    decoder[1].eval()
    with tried(decoder, np.ones((3, D), np.float32)):
        assert not any(m.training for m in decoder.modules())
    assert [m.training for m in decoder.modules()] == [True, True, False]


def test_the_owner_of_a_method_gives_the_precision():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(D, 6)

        def decode(self, z):
            return self.out(z)

    with tried(Model().decode, np.ones((3, D))) as known:
        assert known.dtype == torch.float32 and known.outputs == 6


def test_a_function_around_a_module_gets_latents_in_its_precision():
    module = nn.Linear(D, 6)
    rows = np.random.default_rng(0).normal(size=(5, D))
    with tried(lambda z: module(z).tanh(), rows) as known:
        assert known.dtype == torch.float32
        torch.testing.assert_close(known.function(known.latents(rows)), module(torch.tensor(rows).float()).tanh())
    # What takes the latents as they are is not rounded, and what shows its precision is not asked twice.
    with tried(lambda z: z.tanh(), rows) as known:
        assert known.dtype == torch.float64
    with tried(module.double(), rows.astype(np.float32)) as known:
        assert known.dtype == torch.float64


def test_rows_are_batched_by_the_size_of_all_derivatives():
    with tried(nn.Linear(D, 1000), np.ones((3, D), np.float32)) as known:
        assert known.batch_rows(10) == 13 and known.batch_rows(10**6) == 4


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (3, "an int, but a torch module"),
        (lambda z: z.numpy(), "returns an ndarray"),
        (lambda z: (z, z), "returns a tuple"),
        (lambda z: z.argmax(1, keepdim=True), "int64, which has no derivative"),
        (lambda z: z.sum(1), r"shape \(3,\)"),
        (lambda z: z[:2], "torch.vmap"),
        (lambda z: z[:, :0], r"shape \(3, 0\), which contains no numbers"),
        (lambda z: torch.ones(4, 6) @ z, "cannot take latents"),
        (nn.Linear(D + 1, 2).double(), "Check the width"),
        (lambda z: z @ torch.ones(D, 6).half(), r"shape \(3, 4\), torch.float32: .* Check the width and the dtype"),
        (lambda z: z - z.mean(0), "differs between a batch and the row alone"),
        (lambda z: z + torch.rand_like(z), "the decoder is random"),
        (lambda z: z.detach() * 2, "cannot be differentiated"),
        (torch.inference_mode()(lambda z: z * 2), "cannot be differentiated"),
        (lambda z: torch.from_numpy(z.detach().numpy() * 2), "cannot be differentiated"),
        (nn.Linear(D, 2).half(), "float16, which is too imprecise"),
    ],
)
def test_what_cannot_be_used_is_told(decoder, message):
    rows = np.random.default_rng(0).normal(size=(5, D))
    with pytest.raises(InputError, match=message), tried(decoder, rows):
        pass


def test_latents_that_cannot_be_written_to_are_no_matter():
    rows = np.random.default_rng(0).normal(size=(5, D))
    rows.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with tried(torch.tanh, rows) as known:
            assert known.dtype == torch.float64


def test_the_row_of_a_nan_is_told():
    values = torch.ones(2, 5, 3)
    check_finite("It is", values, np.arange(5))
    values[1, 3, 2] = float("nan")
    with pytest.raises(InputError, match="It is nan at the latents of row 13"):
        check_finite("It is", values, np.arange(10, 15))


def test_a_decoder_in_half_precision(rng):
    matrix = torch.tensor(rng.normal(size=(5, 3)), dtype=torch.float32)
    z = rng.normal(size=(40, 3)).astype(np.float32)
    half, single = (
        nearid.lipschitz(decoder, z).sampled.scale
        for decoder in (lambda z: z.half() @ matrix.T.half(), lambda z: z @ matrix.T)
    )
    assert half == pytest.approx(single, rel=0.01)


MIXING = {
    "statistics of the batch": (lambda z: nn.functional.batch_norm(z, None, None, training=True), "not a single row"),
    "attention across rows": (lambda z: torch.softmax(z @ z.T, 1) @ z, "differs between a batch and the row alone"),
    "a little of the mean": (lambda z: z + 1e-4 * z.mean(0), "output of a row depends on other rows"),
    "a little of the rows before": (lambda z: z + 1e-4 * z.cumsum(0), "output of a row depends on other rows"),
}


@pytest.mark.parametrize("kind", MIXING)
def test_rows_that_influence_one_another_are_noticed(kind):
    decoder, message = MIXING[kind]
    with pytest.raises(InputError, match=message):
        nearid.lipschitz(decoder, np.random.default_rng(0).normal(size=(20, D)))


def test_random_states_are_as_they_were():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()

    def decoder(z):
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        return z + torch.rand(D)

    nearid.lipschitz(decoder, np.random.default_rng(0).normal(size=(20, D)))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]


def test_a_nested_tensor_gets_a_sentence():
    nested = torch.nested.nested_tensor([torch.ones(3, D), torch.ones(2, D)])
    with pytest.raises(InputError, match="The decoder returns a nested tensor"):
        nearid.lipschitz(lambda z: nested, np.ones((4, D)))
