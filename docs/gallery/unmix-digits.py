#: group = Unmix and deconfound
#: order = 1
# %% [markdown]
# # Independent components of digits
#
# Which directions of handwritten digits are independent of each other, and which of them can be trusted?
#
# **Data.** 1,797 digits of 8 x 8 pixels, which come with scikit-learn (UCI, CC BY 4.0).

# %%
from sklearn.datasets import load_digits

import nearid

pixels = load_digits().data
ica = nearid.unmix(pixels, n_components=6, stability=5)
print(ica.view.headline)
print(ica.view.reason)

# %% The components of the digits
ica.picture()

# %% [markdown]
# **Answer.** Two of the 6 components can be interpreted one by one. The others come out differently when ICA starts
# elsewhere or sees half of the digits. A component that was found once is no evidence: look at the columns *trust* and
# *stability* of the whole table first, which `print(ica)` shows.
#
# **Try next.** `ica.transform(pixels)` gives the components of each digit. The page [Unmix](../guide/unmix.md) says
# how to read the diagnostics.
