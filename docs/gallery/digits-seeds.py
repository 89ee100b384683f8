#: group = Several runs
#: order = 1
# %% [markdown]
# # Width and seed: four classifiers of digits
#
# Are hidden layers of different widths, trained from different seeds, still linear maps of each other?
#
# **Data.** 1,797 digits of 8 x 8 pixels, which come with scikit-learn (UCI, CC BY 4.0). The networks are
# scikit-learn's `MLPClassifier`: two with 16 hidden units and two with 64.

# %%
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import nearid

warnings.simplefilter("ignore")  # 40 epochs are enough here; scikit-learn would warn
pixels, digits = load_digits(return_X_y=True)
pixels = pixels / 16


def hidden(width, seed):
    """The hidden layer of a classifier, one row for each digit."""
    net = MLPClassifier(hidden_layer_sizes=width, max_iter=40, learning_rate_init=0.01, random_state=seed)
    net.fit(pixels, digits)
    return np.maximum(pixels @ net.coefs_[0] + net.intercepts_[0], 0)


runs = {f"{width} units, seed {seed}": hidden(width, seed) for width in (16, 64) for seed in (0, 1)}
comparisons = nearid.compare(*runs.values(), names=list(runs), groups="linear", symmetric=True, permutations=19)
print(comparisons.matrix("linear", "r2").to_frame().round(2).to_string())

# %% Share of variance that a linear map explains, for each source and target
comparisons.picture()

# %% [markdown]
# **Answer.** Yes. With equal widths a linear map explains 94% to 97% of the variance of the other seed. The wide
# layers contain the narrow ones (98% to 99%). The narrow layers contain less of the wide ones (91% to 93%), because
# 16 units cannot hold everything that 64 units hold. The direction of a comparison matters here, so both are
# computed (`symmetric=True`).
#
# **Try next.** Give `groups="rigid,linear"` with runs of one width, or more seeds. The page [Are two runs the
# same?](../guide/compare.md) explains the ladder of groups.
