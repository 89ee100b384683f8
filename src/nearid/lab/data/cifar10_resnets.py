"""ResNets for CIFAR-10 that several people trained independently, with one program."""

from __future__ import annotations

from pathlib import Path

from nearid.base.errors import InputError, unknown
from nearid.lab.data.base import RemoteFile, Weights
from nearid.lab.data.places import candidates, locate

HOST = "https://github.com"
AKAMASTER = "akamaster/pytorch_resnet_cifar10"
# Network, file, checksum, repository and path in it.
FILES = (
    (
        "akamaster-20",
        "akamaster_resnet20-12fca82f.th",
        "12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8",
        AKAMASTER,
        "raw/master/pretrained_models/resnet20-12fca82f.th",
    ),
    (
        "akamaster-32",
        "akamaster_resnet32-d509ac18.th",
        "d509ac1820d7f25398913559d7e81a13229b1e7adc5648e3bfa5e22dc137f850",
        AKAMASTER,
        "raw/master/pretrained_models/resnet32-d509ac18.th",
    ),
    (
        "akamaster-44",
        "akamaster_resnet44-014dd654.th",
        "014dd6541728a1c700b1642ab640e211dc6eb8ed507d70697458dc8f8a0ae2e4",
        AKAMASTER,
        "raw/master/pretrained_models/resnet44-014dd654.th",
    ),
    (
        "akamaster-56",
        "akamaster_resnet56-4bfd9763.th",
        "4bfd97631478d6b638d2764fd2baff3edb1d7d82252d54439343b6596b9b5367",
        AKAMASTER,
        "raw/master/pretrained_models/resnet56-4bfd9763.th",
    ),
    (
        "qiyuehub-20",
        "qiyuehub_resnet20.th",
        "217b799c5047dfa6188a9cfb4e5f0b74b29566e05d070380bf2e9a2ababa4e4a",
        "qiyue-hub/pytorch_resnet_cifar10",
        "raw/e9be2c21677d01d14bb719ee4bda7e77934f7619/save_resnet20/model.th",
    ),
    (
        "zhengjiakun-20",
        "ZhengJiakun_resnet20.th",
        "4b83311b48137924b06862d04831431dfeb5dbc9b5ab18c18bda7e9dd6cc08b3",
        "Zheng-Jiakun/pytorch_resnet_cifar10",
        "raw/1fec507049c59b8f6742717958da4fc972afda57/save_resnet20/model.th",
    ),
    (
        "zhengjiakun-56",
        "ZhengJiakun_resnet56.th",
        "2ae84d599f73bf37f5520789b1b8227ba2149d816d03f18dbfcaef565df68bf8",
        "Zheng-Jiakun/pytorch_resnet_cifar10",
        "raw/1fec507049c59b8f6742717958da4fc972afda57/save_resnet56/model.th",
    ),
    (
        "chelcacs-20",
        "Chelcacs_resnet20.th",
        "8106532d43bffa47457686bc55885f36fd5a7b5bd840dd0d6e9539be64ffacdc",
        "Chelcacs/ProjectML",
        "raw/75f1c8acb161ad7d879c83265c5dac3674686abb/save_resnet20/model.th",
    ),
    # The last to be fetched, as its address is a guess.
    (
        "dansun18-20",
        "DanSun18_resnet20.th",
        "037d3256b4e936ef62428c37521389fe4a7f7e414d3c8587481c3ca94e143457",
        "DanSun18/pytorch_resnet_cifar10",
        "raw/f9cd464a12a3229b55833c86347a5e24cf946266/save_resnet20/model.th",
    ),
)


def weights_file(network: str) -> Path:
    """The file of a network by name; if it is not here, the error says how to get it."""
    if network not in CIFAR10_RESNETS.networks:
        raise InputError(unknown("CIFAR ResNet", network, CIFAR10_RESNETS.networks))
    name = CIFAR10_RESNETS.networks[network]
    for folder in candidates(CIFAR10_RESNETS):
        if (folder / name).is_file():
            return folder / name
    # Told at length where there are no weights at all.
    folder = locate(CIFAR10_RESNETS)
    [url] = [file.url for file in CIFAR10_RESNETS.files if file.name == name]
    raise InputError(f"The weights of {network} are not here: get {url} and put it into {folder} as {name}.")


def _file(name: str, checksum: str, repository: str, path: str) -> RemoteFile:
    note = "The address is that of a file of this kind in its repository's history; the checksum is of a copy at hand."
    if repository.startswith("DanSun18"):
        note = (
            "The repository of DanSun18 has many runs of ResNet-20: the address may be another's; the checksum tells."
        )
    return RemoteFile(
        name,
        f"{HOST}/{repository}/{path}",
        checksum=f"sha256:{checksum}",
        checked_by="a copy at hand; akamaster's names end with the beginning of theirs",
        note=note,
    )


CIFAR10_RESNETS = Weights(
    name="cifar10-resnets",
    title="CIFAR-10 ResNets",
    about="weights of ResNets for CIFAR-10 that several people trained independently",
    networks={network: name for network, name, *_ in FILES},
    files=tuple(_file(*rest) for _, *rest in FILES),
    licence="akamaster, Zheng-Jiakun, Chelcacs: BSD 2-Clause; DanSun18, qiyue-hub: none stated",
    citation="Idelbayev: Proper ResNet Implementation for CIFAR10/CIFAR100 in PyTorch, 2018; He, Zhang, Ren, Sun: Deep "
    "Residual Learning for Image Recognition, CVPR 2016",
    homepage=f"{HOST}/{AKAMASTER}",
    folders=("cifar10_resnets",),
)
