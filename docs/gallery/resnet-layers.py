#: group = Layers and heads
#: order = 1
#: needs = cifar10, cifar10-resnets, torch
# %% [markdown]
# # Two ResNets, layer by layer
#
# Which layers of two independently trained ResNets hold the same representation?
#
# **Data.** The first 500 test images of CIFAR-10 (no licence stated), and two ResNet-20 that two people trained
# with the same program (akamaster and Zheng-Jiakun, BSD 2-Clause).

# %%
import torch

import nearid
from nearid.lab.data.cifar10_resnets import weights_file
from nearid.lab.models.cifar_resnet import MEAN, STD, load_cifar_resnet

torch.set_num_threads(1)
images = nearid.load("cifar10", split="test").images.read(0, 500)
stages = ["conv1", "layer1", "layer2", "layer3", "linear"]


def layers(network):
    """Activations of the main layers, averaged over the image."""
    model = load_cifar_resnet(weights_file(network))
    return nearid.extract(model, images, layers=stages, scale=255, mean=MEAN, std=STD, out=network)


akamaster, zheng = layers("akamaster-20"), layers("zhengjiakun-20")
names = ["akamaster", "ZhengJiakun"]
comparison = nearid.compare_layers(akamaster, zheng, measures=["cka", "r2"], permutations=19, names=names)
print(comparison)

# %% Similarity of every layer of one network with every layer of the other
comparison.picture()

# %% [markdown]
# **Answer.** By CKA, every layer is most similar to the layer at the same depth (.87 to .98 on the diagonal). The
# linear map shows a direction as well: an early layer follows from a later one (`layer2` to `layer1`: R2 .91), but
# a later one does not follow from an early one (`conv1` to `layer1`: .41). The last layers agree less than the
# first ones.
#
# **Try next.** Compare with `chelcacs-20`, a network that was trained only half. The page [Two models, layer by
# layer](../guide/models.md) shows the same in one command.
