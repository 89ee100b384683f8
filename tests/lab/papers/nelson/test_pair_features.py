"""Features of pairs: downloaded networks once for all, autoencoders and GPTs trained from their seeds."""

import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

from canonical_files import write_cifar10_sheets  # noqa: E402
from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.data.cifar10_resnets import CIFAR10_RESNETS  # noqa: E402
from nearid.lab.data.registry import cache_folder  # noqa: E402
from nearid.lab.models.cifar_resnet import MEAN, STD, CifarResNet  # noqa: E402
from nearid.lab.papers.common.wikitext import wikitext  # noqa: E402
from nearid.lab.papers.nelson.pair_features import (  # noqa: E402
    Budget,
    ImageModels,
    TextModels,
    files_of,
    held_out_pixels,
    resnet_features,
)

BUDGET = Budget(steps=2, rate=1e-3, batch=3, device="cpu")


@pytest.fixture
def write_text(home):
    """Write words in the place of all splits of WikiText-2."""

    def write(words):
        with zipfile.ZipFile(home("wikitext2") / "wikitext-2-v1.zip", "w") as archive:
            for part in ("train", "valid", "test"):
                archive.writestr(f"wikitext-2/wiki.{part}.tokens", " ".join(words))

    wikitext.cache_clear()
    yield write
    wikitext.cache_clear()


@pytest.fixture
def networks(home):
    """Small networks in the place of the downloaded ones."""
    made = {}
    for seed, (network, name) in enumerate(CIFAR10_RESNETS.networks.items()):
        torch.manual_seed(seed)
        made[network] = CifarResNet(8).eval()
        torch.save({"state_dict": made[network].state_dict()}, home("cifar10_resnets") / name)
    return made


def test_test_images_are_drawn_by_a_seed(home, rng):
    images = write_cifar10_sheets(home("cifar10"), rng, test=9)["test"][0]
    np.testing.assert_array_equal(held_out_pixels(9, 0), images)
    np.testing.assert_array_equal(held_out_pixels(100, 1), images)
    some, again, others = (held_out_pixels(4, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(some, again)
    assert some.shape == (4, 32, 32, 3) and (some != others).any()
    # Each of them once.
    assert len({image.tobytes() for image in some} & {image.tobytes() for image in images}) == 4


def test_features_of_a_network_are_computed_once(networks, rng, monkeypatch):
    pixels = rng.integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    found = resnet_features("dansun18-20", pixels)
    x = torch.as_tensor(pixels).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        want = networks["dansun18-20"].features(
            (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
        )
    np.testing.assert_allclose(found, want, atol=1e-5)
    kept = list((cache_folder() / CIFAR10_RESNETS.name).iterdir())
    assert len(kept) == 1

    def never(path):
        raise AssertionError("the network was loaded again")

    with monkeypatch.context() as patched:
        patched.setattr("nearid.lab.models.cifar_resnet.load_cifar_resnet", never)
        np.testing.assert_array_equal(resnet_features("dansun18-20", pixels), found)
    # Other images and other networks are not taken for these.
    assert (resnet_features("dansun18-20", pixels[::-1]) != found).any()
    assert (resnet_features("chelcacs-20", pixels) != found).any()


def test_other_weights_of_a_name_get_features_of_their_own(networks, home, rng):
    pixels = rng.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    found = resnet_features("dansun18-20", pixels)
    torch.save(networks["akamaster-20"].state_dict(), home("cifar10_resnets") / "DanSun18_resnet20.th")
    assert (resnet_features("dansun18-20", pixels) != found).any()


def test_autoencoders_follow_their_seeds(home, rng, tmp_path):
    write_cifar10_sheets(home("cifar10"), rng)
    learner = ImageModels(held_out_pixels(4, 0), 8, 1, BUDGET)
    first, again, other = (learner.learn(seed, tmp_path / str(k)) for k, seed in enumerate((0, 0, 1)))
    np.testing.assert_array_equal(first.features, again.features)
    assert first.features.shape == (4, 8) and (first.features != other.features).any()
    assert first.curves["loss"]["x"][-1] == 2 and first.curves["loss"]["y"] != other.curves["loss"]["y"]


def test_gpts_give_states_of_the_same_tokens(write_text, rng, tmp_path):
    write_text([f"w{k}" for k in rng.integers(0, 30, 400)])
    learner = TextModels(40, 0, vocabulary=20, context=8, width=8, depth=2, budget=BUDGET)
    stream, rows, size = learner.tokens
    assert size == 20 and rows.shape == (10, 8) and len(stream) == 401
    assert (TextModels(40, 1, 20, 8, 8, 2, BUDGET).tokens[1] != rows).any()
    first, again, other = (learner.learn(seed, tmp_path / str(k)) for k, seed in enumerate((0, 0, 1)))
    np.testing.assert_array_equal(first.features, again.features)
    assert first.features.shape == (40, 8) and (first.features != other.features).any()


def test_the_state_that_the_head_reads_is_taken(write_text, monkeypatch, tmp_path):
    """With a model whose states tell their layer, row and place."""

    class Told(torch.nn.Module):
        def __init__(self, *sizes, **more):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, ids):
            return self.weight.sum()

        def hidden_states(self, ids):
            places = torch.arange(ids.shape[1]).expand(ids.shape)
            return [torch.stack([torch.full(ids.shape, layer), ids, places], dim=2).double() for layer in range(4)]

    monkeypatch.setattr("nearid.lab.models.gpt.GPT", Told)
    monkeypatch.setattr("nearid.lab.papers.nelson.pair_features.following_constants", lambda model, rows: [1.0] * 4)
    write_text([f"w{k % 7}" for k in range(200)])
    learner = TextModels(20, 0, vocabulary=20, context=8, width=8, depth=3, budget=BUDGET)
    learnt = learner.learn(0, tmp_path)
    layer, ids, places = learnt.features.T
    assert [set(states[:, 0]) for states in learnt.layers] == [{0}, {1}, {2}, {3}]
    assert (layer == 3).all() and places.tolist() == [1, 3, 5, 7] * 5
    np.testing.assert_array_equal(ids, learner.tokens[1][:, [1, 3, 5, 7]].ravel())


@pytest.mark.parametrize("given", ["one.npy", "a,b,c", "a,", ","])
def test_two_files_are_expected(given):
    with pytest.raises(InputError, match="Two files of features are expected"):
        files_of(given)
    assert files_of("a.npy, b.npy") == ("a.npy", "b.npy")
