#: group = Decoders and numbers of rows
#: order = 1
#: needs = mnist_vaes/VAE/model.pt, torch
# %% [markdown]
# # How far decoders are from an isometry
#
# Which of five training objectives gives a decoder that nearly preserves distances?
#
# **Data.** Five decoders of MNIST digits with 10 latents that differ in the objective of their training
# (disentangling-vae, MIT). Each is measured at 100 points that are drawn from its prior.

# %%
import os
from pathlib import Path

import torch

import nearid

torch.set_num_threads(1)
folder = Path(os.environ["NEARID_DATA"], "mnist_vaes")
stretches = {
    name: nearid.lipschitz(folder / name / "model.pt", normal=100, name=name)
    for name in ("VAE", "betaH", "betaB", "factor", "btcvae")
}
for name, result in stretches.items():
    ten, all_directions = result.sampled.local.mean.value, result.exact.local.mean.value
    print(f"{name:8} mean L over 10 random directions {ten:6.1f}, over all directions {all_directions:6.1f}")

# %%
print(stretches["VAE"])

# %% Local constants of the decoder of the plain VAE
stretches["VAE"].picture()

# %% [markdown]
# **Answer.** None of them. Over all directions the mean constant is 11 or more, and an isometry has 1. Ten random
# directions hide the difference between the objectives: they give 7 to 15 for all five. Over all directions
# `btcvae` has 77, and `betaB` has infinity, because some directions of its latents change no pixel.
#
# **Try next.** Use the latents of real digits instead of draws from the prior. The page [Does this decoder preserve
# distances?](../guide/lipschitz.md) explains the theorem behind the number.
