"""How a decoder stretches lengths: Jacobian-vector products at many latents and along many directions at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import jvp, vmap

from nearid.base.errors import InputError, brief, type_of
from nearid.base.limits import check_memory
from nearid.base.progress import Progress
from nearid.geometry.constants import PAIRED, Pairwise
from nearid.moments import Floats
from nearid.questions.extract.users_code import same_draws

# Number of rows to check whether a decoder can be used.
PROBED = 3
# Outputs of a row in a batch and alone may differ by this share of the largest output: kernels round differently.
ROUNDED = 1e-3
# Derivatives with respect to other rows below this many units in the last place of the largest are rounding.
MIXED = 100
ALONE = "Each row must be decoded independently: use stored statistics for normalisation, and attention only within a "
"row."
# Largest count of numbers in the directional derivatives of a batch. Hidden layers are often wider than outputs, and
# allocating very large buffers costs more than a larger batch saves.
BATCH = 1 << 17
# Singular values below this many units in the last place of the largest are rounding.
LOST = 10

Push = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Decoder:
    """A checked decoder: it maps rows to rows independently, with derivatives.

    Attributes
    ----------
    function : callable
        Tensor of shape (n, d) -> tensor of shape (n, m).
    mode : {"forward", "reverse"}
        How it is differentiated.
    outputs : int
        m, all numbers of one output.
    dtype : torch.dtype
    device : torch.device
    """

    function: Callable[[Tensor], Tensor]
    mode: str
    outputs: int
    dtype: torch.dtype
    device: torch.device

    def batch_rows(self, directions: int) -> int:
        """Rows of a batch for so many directions."""
        return max(4, BATCH // (directions * self.outputs))

    def latents(self, rows: Floats) -> Tensor:
        """Latents as a tensor for the decoder."""
        return torch.tensor(rows, dtype=self.dtype, device=self.device)

    def push(self, latents: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and directional derivatives.

        Parameters
        ----------
        latents : Tensor of shape (n, d)
        directions : Tensor of shape (k, n, d)

        Returns
        -------
        tuple of Tensor
            Of shape (n, m) and (k, n, m).
        """
        return MODES[self.mode](self.function, latents, directions)


@contextmanager
def tried(decoder: Any, rows: Floats) -> Iterator[Decoder]:
    """Yield a decoder after checking that it works; it is in evaluation mode inside the `with` block.

    Parameters
    ----------
    decoder : torch.nn.Module, a method of one, or any callable of a tensor of shape (n, d)
    rows : ndarray of shape (n, d)
        Latents to try it with.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if not callable(decoder):
        raise InputError(f"The decoder is {type_of(decoder)}, but a torch module or a function is expected.")
    owner = decoder if isinstance(decoder, nn.Module) else getattr(decoder, "__self__", None)
    modules = list(owner.modules()) if isinstance(owner, nn.Module) else []
    training = [m.training for m in modules]
    # Fused attention has no forward-mode derivatives; the plain one has.
    with sdpa_kernel(SDPBackend.MATH), same_draws():
        try:
            for m in modules:
                m.training = False
            yield _tried(_flat(decoder), rows, *_precision(modules, rows))
        finally:
            for m, before in zip(modules, training, strict=True):
                m.training = before


def _flat(decoder: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    """The decoder with each output as one row."""

    def function(latents: Tensor) -> Tensor:
        out = decoder(latents)
        if not isinstance(out, Tensor):
            raise InputError(
                f"The decoder returns {type_of(out)}, but one torch tensor is expected: wrap it in a function "
                "that computes with torch and returns the tensor to measure."
            )
        if out.is_nested:
            raise InputError("The decoder returns a nested tensor, but rows of equal length are expected: pad them.")
        if not out.is_floating_point():
            raise InputError(
                f"The decoder returns {out.dtype}, which has no derivative. Real floating-point numbers are expected."
            )
        if out.ndim < 2 or len(out) != len(latents):
            raise InputError(
                f"The decoder returned shape {tuple(out.shape)} for latents of shape {tuple(latents.shape)}, but one "
                f"output row per latent row is expected. Wrap a decoder of single vectors in torch.vmap."
            )
        if not out.numel():
            raise InputError(f"The decoder returned shape {tuple(out.shape)}, which contains no numbers.")
        return out.flatten(1)

    return function


def _precision(modules: list[nn.Module], rows: Floats) -> tuple[tuple[torch.dtype, ...], torch.device]:
    """Dtypes to try, and the device: those of the decoder's parameters, or of the latents if it shows none.

    A function may contain a module, whose parameters most often have torch's default dtype.
    """
    for m in modules:
        for own in (*m.parameters(recurse=False), *m.buffers(recurse=False)):
            if own.is_floating_point():
                if own.dtype.itemsize < 4:
                    raise InputError(
                        f"The decoder computes in {own.dtype}, which is too imprecise for derivatives. Convert it "
                        f"with .float()."
                    )
                return (own.dtype,), own.device
    return (torch.from_numpy(np.empty(0, rows.dtype)).dtype, torch.get_default_dtype()), torch.device("cpu")


def _tried(
    function: Callable[[Tensor], Tensor], rows: Floats, dtypes: tuple[torch.dtype, ...], device: torch.device
) -> Decoder:
    for dtype in dtypes:
        z = torch.tensor(rows[:PROBED], dtype=dtype, device=device)
        try:
            with torch.no_grad():
                together = function(z)
        except InputError:
            raise
        except Exception as error:  # a decoder may raise anything
            if dtype != dtypes[-1]:
                continue
            raise InputError(
                f"The decoder cannot take latents of shape {tuple(z.shape)}, {dtype}: {brief(error)}. Check the width "
                f"and the dtype of the latents."
            ) from error
        break
    _refuse_mixing(function, z, together)
    # For each row, a direction that does not change the other rows.
    along = torch.diag_embed(torch.ones_like(z).T).permute(1, 2, 0).contiguous()
    failed = ""
    for mode, push in MODES.items():
        try:
            pushed = push(function, z, along)[1]
        except (RuntimeError, NotImplementedError) as error:
            failed = brief(error)
            continue
        own = torch.eye(len(z), dtype=torch.bool, device=device)[:, :, None]
        others = pushed.masked_fill(own, 0.0).abs().max()
        if bool(others > MIXED * torch.finfo(dtype).eps * pushed.abs().max()):
            raise InputError(
                f"The output of a row depends on other rows (their derivative is up to "
                f"{others / pushed.abs().max():.2g} of its own). {ALONE}"
            )
        return Decoder(function, mode, together.shape[1], dtype, device)
    raise InputError(
        f"The decoder's output cannot be differentiated by the latents: {failed}. Compute it with torch from the "
        f"given tensor, without detach(), numpy or torch.inference_mode."
    )


def _refuse_mixing(function: Callable[[Tensor], Tensor], z: Tensor, together: Tensor) -> None:
    """Refuse a decoder whose output for a row differs between a batch and the row alone."""
    try:
        with torch.no_grad():
            alone = torch.cat([function(row) for row in z.split(1)])
    except Exception as error:  # statistics of a batch, for example, cannot be taken of a single row
        raise InputError(
            f"The decoder accepts {len(z)} rows, but not a single row ({brief(error)}). {ALONE}"
        ) from error
    # NaN compares as no difference here: it is reported for all rows, later.
    if alone.shape != together.shape or bool((alone - together).abs().max() > ROUNDED * together.abs().max()):
        raise InputError(
            "The output of the decoder for a row differs between a batch and the row alone. Rows depend on each "
            f"other, or the decoder is random (batch normalisation or dropout in training mode?). {ALONE}"
        )


def _forward(function: Callable[[Tensor], Tensor], latents: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Forward mode: the outputs are computed once, their derivatives for all directions in one batch."""

    def along(v: Tensor) -> Any:
        return jvp(function, (latents,), (v,), strict=True)

    with torch.no_grad():
        # The outputs do not depend on the direction, so they come without a dimension for it.
        out, tangents = vmap(along, out_dims=(None, 0))(directions)  # type: ignore[arg-type]
    return out, tangents


def _reverse(function: Callable[[Tensor], Tensor], latents: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Reverse mode twice, if there is no forward mode: J^T u is linear in u, and its derivative along v is J v."""
    with torch.enable_grad():
        z = latents.detach().requires_grad_()
        out = function(z)
        u = torch.zeros_like(out, requires_grad=True)
        (pulled,) = torch.autograd.grad(out, z, u, create_graph=True)
        tangents = [torch.autograd.grad(pulled, u, v, retain_graph=True)[0] for v in directions]
    return out.detach(), torch.stack(tangents)


MODES: dict[str, Push] = {"forward": _forward, "reverse": _reverse}


def check_finite(what: str, values: Tensor, index: np.ndarray) -> None:
    """Refuse NaN and infinities in values of shape (..., n, m); `index` numbers the n latents for the reader."""
    fine = values.isfinite().all(dim=-1)
    if not bool(fine.all()):
        row = int((~fine).nonzero()[0, -1])
        bad = values[..., row, :]
        value = bad[~bad.isfinite()][0].item()
        raise InputError(
            f"{what} {value} at the latents of row {index[row]} (counted from 0). Leave such latents out, or correct "
            f"the "
            "decoder."
        )


def stretches(
    decoder: Decoder,
    z: Floats,
    index: np.ndarray,
    directions: int,
    whole: bool,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Floats, Floats | None, Pairwise]:
    """Lengths |J v| of shape (n, directions), singular values (n, d) or None, and distances of pairs.

    Parameters
    ----------
    z : ndarray of shape (n, d)
    index : ndarray of int, shape (n,)
        Rows of the latents that z are.
    whole : bool
        Whether to compute full Jacobians, which give the singular values.
    rng : numpy.random.Generator
    """
    n, d = z.shape
    vectors = _directions(directions, n, d, rng)
    # Files are often sorted, so pairs use a random sample of rows if there are too many.
    paired = np.arange(n) if n <= PAIRED else np.sort(rng.choice(n, PAIRED, replace=False))
    step = decoder.batch_rows(d if whole else directions)
    starts = range(0, n, step)
    tick = progress("derivatives", len(starts))
    lengths, singular, outputs = [], [], []
    for start in starts:
        rows = slice(start, start + step)
        latents, along = decoder.latents(z[rows]), decoder.latents(vectors[:, rows])
        axes = torch.eye(d, dtype=decoder.dtype, device=decoder.device)[:, None].expand(d, len(latents), d)
        out, pushed = decoder.push(latents, axes if whole else along)
        pushed = pushed.to(along.dtype)
        check_finite("The decoder gives", out, index[rows])
        check_finite("The decoder is not differentiable: its derivative is", pushed, index[rows])
        if whole:
            # The columns of the Jacobians; directions are combinations of them.
            singular.append(_singular_values(pushed))
            pushed = torch.einsum("knd,dnm->knm", along, pushed)
        lengths.append(torch.linalg.vector_norm(pushed.double(), dim=2).T.cpu().numpy())
        here = paired[slice(*np.searchsorted(paired, [start, start + step]))] - start
        outputs.append(out.cpu().numpy()[here])
        tick()
    return (
        np.concatenate(lengths),
        np.concatenate(singular) if whole else None,
        Pairwise.of(z[paired], np.concatenate(outputs)),
    )


def _directions(directions: int, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Random unit vectors of shape (directions, n, d)."""
    what = f"Drawing {directions} directions at {n} points of {d} latents"
    check_memory(what, 8 * directions * n * d, "Use fewer points or fewer directions.")
    vectors = rng.standard_normal((directions, n, d))
    for v in vectors:  # one by one, as lengths of all at once take twice the memory again
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return vectors


def _singular_values(columns: torch.Tensor) -> Floats:
    """Singular values, descending, of Jacobians given as (d, n, m); those lost in rounding are 0."""
    d, _, m = columns.shape
    jacobians = columns.permute(1, 2, 0).double()
    # The triangular factor has the same singular values, and is small however many outputs there are.
    values = torch.linalg.svdvals(torch.linalg.qr(jacobians, mode="r").R)
    values = torch.where(values > LOST * torch.finfo(columns.dtype).eps * values[:, :1], values, 0.0)
    # With fewer outputs than latents, some directions are lost.
    return np.pad(values.cpu().numpy(), ((0, 0), (0, max(d - m, 0))))
