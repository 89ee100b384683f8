import hashlib

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.cifar10_resnets import CIFAR10_RESNETS, weights_file
from nearid.lab.data.load import load, load_sentences
from nearid.lab.data.registry import find


def test_each_network_has_a_file_of_its_own(home):
    folder = home("cifar10_resnets")
    for file in CIFAR10_RESNETS.files:
        (folder / file.name).touch()
    assert weights_file("dansun18-20") == folder / "DanSun18_resnet20.th"
    assert len({weights_file(network) for network in CIFAR10_RESNETS.networks}) == len(CIFAR10_RESNETS.files) == 9


def test_what_is_not_here_is_told(home):
    with pytest.raises(InputError, match=r"CIFAR-10 ResNets is not on this machine(?s:.*)/resnet20-12fca82f\.th"):
        weights_file("akamaster-20")
    with pytest.raises(InputError, match="Did you mean akamaster-20"):
        weights_file("akamaster20")


def test_one_that_is_missing_among_others_is_told(home):
    (home("cifar10_resnets") / "Chelcacs_resnet20.th").touch()
    assert weights_file("chelcacs-20").exists() and find(CIFAR10_RESNETS) == home("cifar10_resnets")
    with pytest.raises(InputError, match=r"dansun18-20 are missing. Download https://.* as DanSun18_resnet20\.th"):
        weights_file("dansun18-20")


def test_weights_are_neither_images_nor_text():
    with pytest.raises(InputError, match=r"holds weights, not images: nearid\.lab\.models\.cifar_resnet"):
        load("cifar10-resnets")
    with pytest.raises(InputError, match="holds weights, not text"):
        load_sentences("cifar10-resnets")


def test_the_real_ones(real_data):
    if find(CIFAR10_RESNETS) is None:
        pytest.skip(f"the CIFAR-10 ResNets are not in {real_data}")
    for network, file in zip(CIFAR10_RESNETS.networks, CIFAR10_RESNETS.files, strict=True):
        assert weights_file(network).name == file.name
        assert file.checksum == f"sha256:{hashlib.sha256(weights_file(network).read_bytes()).hexdigest()}"
