"""ResNets for CIFAR-10 that several people trained independently, with one program."""

from pathlib import Path

from nearid.base.errors import InputError, unknown
from nearid.lab.data.base import RemoteFile, Weights
from nearid.lab.data.registry import candidates, locate

# Where each owner keeps networks.
REPOSITORIES = {
    "akamaster": "akamaster/pytorch_resnet_cifar10/raw/master/pretrained_models",
    "qiyuehub": "qiyue-hub/pytorch_resnet_cifar10/raw/e9be2c21677d01d14bb719ee4bda7e77934f7619",
    "ZhengJiakun": "Zheng-Jiakun/pytorch_resnet_cifar10/raw/1fec507049c59b8f6742717958da4fc972afda57",
    "Chelcacs": "Chelcacs/ProjectML/raw/75f1c8acb161ad7d879c83265c5dac3674686abb",
    "DanSun18": "DanSun18/pytorch_resnet_cifar10/raw/f9cd464a12a3229b55833c86347a5e24cf946266",
}
# Owner and depth, and the SHA-256. The one with an uncertain address is downloaded last.
NETWORKS = {
    "akamaster-20": "12fca82f0bebc4135bf1f32f6e3710e61d5108578464b84fd6d7f5c1b04036c8",
    "akamaster-32": "d509ac1820d7f25398913559d7e81a13229b1e7adc5648e3bfa5e22dc137f850",
    "akamaster-44": "014dd6541728a1c700b1642ab640e211dc6eb8ed507d70697458dc8f8a0ae2e4",
    "akamaster-56": "4bfd97631478d6b638d2764fd2baff3edb1d7d82252d54439343b6596b9b5367",
    "qiyuehub-20": "217b799c5047dfa6188a9cfb4e5f0b74b29566e05d070380bf2e9a2ababa4e4a",
    "ZhengJiakun-20": "4b83311b48137924b06862d04831431dfeb5dbc9b5ab18c18bda7e9dd6cc08b3",
    "ZhengJiakun-56": "2ae84d599f73bf37f5520789b1b8227ba2149d816d03f18dbfcaef565df68bf8",
    "Chelcacs-20": "8106532d43bffa47457686bc55885f36fd5a7b5bd840dd0d6e9539be64ffacdc",
    "DanSun18-20": "037d3256b4e936ef62428c37521389fe4a7f7e414d3c8587481c3ca94e143457",
}


def weights_file(network: str) -> Path:
    """Return the file of a network by name. If it is missing, the error says how to get it."""
    if network not in FILES:
        raise InputError(unknown("CIFAR ResNet", network, FILES))
    file = FILES[network]
    for folder in candidates(CIFAR10_RESNETS):
        if (folder / file.name).is_file():
            return folder / file.name
    # If there are no weights at all, the message is longer.
    folder = locate(CIFAR10_RESNETS)
    raise InputError(
        f"The weights of {network} are missing. Download {file.url} and save it in {folder} as {file.name}."
    )


def _file(network: str, checksum: str) -> RemoteFile:
    owner, _, depth = network.partition("-")
    # akamaster's names end with the beginning of the checksum.
    stem = f"resnet{depth}-{checksum[:8]}" if owner == "akamaster" else f"resnet{depth}"
    path = f"{stem}.th" if owner == "akamaster" else f"save_{stem}/model.th"
    return RemoteFile(
        f"{owner}_{stem}.th",
        f"https://github.com/{REPOSITORIES[owner]}/{path}",
        checksum=f"sha256:{checksum}",
        checked_by="a copy at hand; akamaster's names end with the beginning of theirs",
    )


FILES = {network.lower(): _file(network, checksum) for network, checksum in NETWORKS.items()}
CIFAR10_RESNETS = Weights(
    name="cifar10-resnets",
    title="CIFAR-10 ResNets",
    about="weights of ResNets for CIFAR-10 that several people trained independently",
    networks={network: file.name for network, file in FILES.items()},
    files=tuple(FILES.values()),
    licence="akamaster, Zheng-Jiakun, Chelcacs: BSD 2-Clause; DanSun18, qiyue-hub: none stated",
    citation="Idelbayev: Proper ResNet Implementation for CIFAR10/CIFAR100 in PyTorch, 2018; He, Zhang, Ren, Sun: Deep "
    "Residual Learning for Image Recognition, CVPR 2016",
    homepage="https://github.com/akamaster/pytorch_resnet_cifar10",
    folders=("cifar10_resnets",),
)
