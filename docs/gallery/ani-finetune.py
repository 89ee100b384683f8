#: group = Two runs
#: order = 2
#: needs = ensembles/ani_C.npz
# %% [markdown]
# # A network and its fine-tune
#
# How far does fine-tuning move a representation, compared with training again from another seed?
#
# **Data.** The last hidden layer (96 units) of ANI-1x networks and of their fine-tunes ANI-1ccx for 953 carbon
# atoms in the molecules of the G2 and S22 sets. The networks are those of torchani 1.0.1 (MIT).

# %%
import os
from pathlib import Path

import numpy as np

import nearid

atoms = np.load(Path(os.environ["NEARID_DATA"], "ensembles/ani_C.npz"))
options = {"blocks": atoms["molecule"], "permutations": 19}  # whole molecules are held out
finetune = nearid.compare(atoms["ani1x_0"], atoms["ani1ccx_0"], names=["ani1x_0", "ani1ccx_0"], **options)
seed = nearid.compare(atoms["ani1x_0"], atoms["ani1x_1"], names=["ani1x_0", "ani1x_1"], **options)
print(finetune)

# %%
for group in ("permutation", "rigid", "linear"):
    errors = [float(comparison.groups[group].epsilon) for comparison in (finetune, seed)]
    print(f"{group:12} epsilon {errors[0]:.3f} (fine-tune), {errors[1]:.3f} (another seed)")

# %% The ladder of groups for a network and its fine-tune
finetune.picture()

# %% [markdown]
# **Answer.** Fine-tuning moves the representation less than a new seed. After fine-tuning, matching single units
# already explains 85% of the variance (33% between two seeds): many units keep their role. The error of the best
# linear map is about half as large (epsilon .037 against .066).
#
# **Try next.** Compare the other seven pairs (`ani1x_1` with `ani1ccx_1`, ...). The page [Are two runs the
# same?](../guide/compare.md) explains epsilon.
