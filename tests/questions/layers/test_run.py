"""Layers against layers: how they are opened, paired and named; what cannot be compared is refused."""

import json

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

import nearid
from nearid import InputError, compare_layers, extract
from nearid.arrays.formats.layers import LayerRows
from nearid.folds import assign
from nearid.questions.layers.result import measures

ALL = list(measures())


def test_copies_in_one_block_are_held_out_together(rng):
    x = np.repeat(rng.normal(size=(40, 3)), 5, axis=0)
    for blocks, words in ((np.repeat(np.arange(40), 5), "Copies of one block are held out"), ("none", "are fitted on")):
        for measure in ("r2", "epsilon"):
            alerts = compare_layers({"a": x}, {"b": 2 * x}, measures=measure, blocks=blocks, permutations=0).alerts
            assert words in next(a.message for a in alerts if a.code == "repeated_rows")


@pytest.mark.parametrize("measure", ["r2", "epsilon"])
def test_copies_are_counted_among_all_rows_where_only_some_traits_are_kept(rng, monkeypatch, measure):
    """Of more than EXACT rows, only some of the numbers by which copies are found are kept."""
    monkeypatch.setattr(nearid.folds, "EXACT", 2000)
    x = rng.normal(size=(4000, 3))
    x[3000:] = x[:1000]
    alerts = compare_layers({"a": x}, {"b": 2 * x}, measures=measure, blocks="none", permutations=0).alerts
    message = next(a.message for a in alerts if a.code == "repeated_rows")
    assert "of 4000 rows" in message
    # Half of the 3000 different values are kept, so the standard error of the count is 55.
    assert float(message.split()[1]) == pytest.approx(1000, rel=0.25)


def test_within_one_model_with_a_measure_of_ones_own(sides):
    def widths(a, b):
        return a.shape[1] / b.shape[1]

    x, _ = sides
    found = compare_layers(x, measures=["cka", widths], layers="[ab]")
    np.testing.assert_allclose(np.diag(found["cka"]), 1, atol=1e-9)
    np.testing.assert_allclose(found["widths"], [[1, 5 / 4], [4 / 5, 1]])
    only = compare_layers(x, measures=widths)
    assert list(only.values) == ["widths"] and only.n == 400


def test_provenance_has_both_sides_and_all_options(sides):
    x, y = sides
    made = compare_layers(x, y, layers="[abpq]", names=["one", "two"], svcca_k=2).provenance
    assert made["options"] == {
        "measures": ["cka"], "layers": ["[abpq]"], "folds": 5, "ridge": "auto", "svcca_k": 2, "random_state": 0,
        "blocks": None, "permutations": None,
    }  # fmt: skip
    assert [side["name"] for side in made["inputs"]] == ["one", "two"]
    width = sum(x[layer].shape[1] for layer in "ab")
    assert made["inputs"][0]["shape"] == [400, width] and made["inputs"][0]["source"] == "dict"
    assert made["inputs"][0]["fingerprint"] != made["inputs"][1]["fingerprint"]


def test_measures_are_named_as_everywhere(sides):
    x, _ = sides
    assert list(compare_layers({"a": x["a"]}, measures="all", permutations=1).values) == ALL
    assert list(compare_layers({"a": x["a"]}, measures=["mcc, cka,", " cka"]).values) == ["mcc", "cka"]


def test_ids_pair_the_rows(sides):
    x, y = sides
    order = np.random.default_rng(1).permutation(400)
    left = {k: nearid.arrays.open_rows(v, ids=np.arange(400)) for k, v in x.items()}
    right = {k: nearid.arrays.open_rows(v[order][:390], ids=order[:390]) for k, v in y.items()}
    found = compare_layers(left, right, measures="r2")
    assert (
        found.n == 390
        and found["r2"][0, 0] > 0.99
        and "are left out: the other side has no row with the same" in found.alerts[0].message
    )

    def distance(a, b):
        return np.abs(a[:, :2] - b[:, :2]).max()

    # A function of one's own gets them paired, too.
    shuffled = {k: nearid.arrays.open_rows(v[order], ids=order) for k, v in x.items()}
    assert np.diag(compare_layers(left, shuffled, measures=distance)["distance"]).max() == 0


def test_a_layer_that_does_not_vary(sides):
    x, y = sides
    found = compare_layers({**x, "dead": np.ones((400, 3))}, y, measures=ALL, permutations=1)
    for matrix in found.values.values():
        assert np.isnan(matrix[3]).all() and np.isfinite(matrix[:3]).all()
    assert found.alerts[-1].code == "constant_layer" and "dead" in found.alerts[-1].message
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.nearest("cka")["a"][0] == "p" and "dead" not in found.nearest("cka")
    # Of errors the least is nearest.
    assert found.nearest("epsilon")["a"][0] == "p" and "dead" not in found.nearest("epsilon")
    only = compare_layers({**x, "dead": np.ones((400, 3))}, y, measures="epsilon")
    assert only.alerts[-1].code == "constant_layer" and "dead is constant" in only.alerts[-1].message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "ckaa"}, r"no measure between layers named 'ckaa'. Did you mean cka"),
        ({"measures": []}, "No measure between layers is given. There are: cka"),
        ({"measures": [lambda a, b: 0, lambda a, b: 1]}, "Two measures have the name <lambda>"),
        ({"folds": 1}, "folds is 1, but a whole number between 2 and 255"),
        ({"svcca_k": 0}, "svcca_k"),
        ({"layers": "z*"}, "nothing named 'z\\*'"),
        ({"names": ["a"]}, "1 names were given"),
    ],
)
def test_what_cannot_be_compared_is_told(sides, options, message):
    with pytest.raises(InputError, match=message):
        compare_layers(*sides, **options)


def test_what_has_no_layers_is_told(sides, tmp_path):
    with pytest.raises(InputError, match="x is an ndarray; an extraction"):
        compare_layers(np.zeros((4, 2)), sides[1])
    with pytest.raises(InputError, match=r"not a folder of extracted layers"):
        compare_layers(tmp_path, sides[1])
    with pytest.raises(InputError, match="was not measured"):
        compare_layers(*sides)["cca"]


def test_a_measure_of_your_own_that_gives_no_number_is_refused_by_the_layers(rng):
    x = rng.normal(size=(50, 2))
    with pytest.raises(InputError, match=r"returned 'no' for .* but a number is expected"):
        compare_layers({"a": x}, {"b": x}, measures=lambda a, b: "no")


def test_layers_with_and_without_an_index_are_paired_in_one_way(rng):
    pd = pytest.importorskip("pandas")
    x, order = rng.normal(size=(200, 2)), rng.permutation(200)
    left = {"b": x, "a": pd.DataFrame(x, index=np.arange(200) + 7)}
    right = {"c": pd.DataFrame(x[order], index=order + 7)}
    found = compare_layers(left, right, measures="r2,epsilon")
    assert found["r2"].min() > 0.999 and found["epsilon"].max() < 1e-6
    assert [a.message for a in found.alerts] == ["x:b has no index. Its rows are assumed to be in the order of x:a."]


def test_layers_whose_names_are_equal_as_text_are_refused(rng):
    x = rng.normal(size=(40, 2))
    with pytest.raises(InputError, match="several layers named '1'"):
        compare_layers({1: x, "1": x})


@pytest.mark.parametrize("measure", ["r2", "epsilon", "mcc"])
def test_repeated_and_few_rows_of_layers_are_reported(rng, measure):
    x = np.repeat(rng.normal(size=(10, 6)), 4, axis=0)
    found = {a.code for a in compare_layers({"a": x}, {"b": x[:, ::-1]}, measures=measure).alerts}
    assert {"repeated_rows", "few_rows"} <= found and ("few_rows_per_fold" in found) == (measure == "mcc")
    assert not compare_layers({"a": x}, {"b": x}, measures="cka", blocks="none").alerts


class TestBlocks:
    """Rows of 40 texts, 20 each, of which all that two unrelated models know is the text."""

    TEXTS = np.repeat(np.arange(40), 20)

    @pytest.fixture
    def unrelated(self, rng):
        def model(widths):
            return {
                k: rng.normal(size=(40, w))[self.TEXTS] + 0.3 * rng.normal(size=(800, w)) for k, w in widths.items()
            }

        return model({"a": 24, "b": 20}), model({"p": 6, "q": 4})

    def test_whole_blocks_are_held_out(self, unrelated, tmp_path):
        x, y = unrelated
        plain = compare_layers(x, y, measures="r2,cca,epsilon", blocks="none", permutations=0)
        held = compare_layers(x, y, measures="r2,cca,epsilon", blocks=self.TEXTS, permutations=0)
        assert plain["r2"].min() > 0.2 and held["r2"].max() < 0.1
        assert (held["cca"] < plain["cca"] - 0.1).all() and (held["epsilon"] > plain["epsilon"]).all()
        assert held.provenance["options"]["blocks"] == "labels"
        np.save(tmp_path / "texts.npy", self.TEXTS)
        by_file = compare_layers(x, y, measures="r2", blocks=tmp_path / "texts.npy", permutations=0)
        np.testing.assert_array_equal(by_file["r2"], held["r2"])
        # Rows of a text follow each other: without blocks nearid finds that they are alike.
        looked = compare_layers(x, y, measures="r2")
        assert looked["r2"].max() < 0.1 and "serial_rows" in [alert.code for alert in looked.alerts]
        # Blocks of single rows are no blocks; but the folds differ, and with them the figures a little.
        single = compare_layers(x, y, measures="r2", blocks=np.arange(800), permutations=0)
        np.testing.assert_allclose(single["r2"], plain["r2"], atol=0.1)

    def test_against_folds_made_by_hand(self, unrelated):
        _, y = unrelated
        found = compare_layers(
            {"p": y["p"]}, {"q": y["p"] @ np.diag(np.arange(1, 7))}, measures="r2_rigid", blocks=self.TEXTS
        )
        a, b = y["p"], y["p"] @ np.diag(np.arange(1, 7))
        fold, error, spread = assign(800, 5, 0, self.TEXTS), 0.0, 0.0
        for k in range(5):
            assert not set(self.TEXTS[fold == k]) & set(self.TEXTS[fold != k])
            mean_a, mean_b = a[fold != k].mean(axis=0), b[fold != k].mean(axis=0)
            turn, size = orthogonal_procrustes(a[fold != k] - mean_a, b[fold != k] - mean_b)
            scale = size / np.sum((a[fold != k] - mean_a) ** 2)
            error += np.sum((b[fold == k] - mean_b - scale * (a[fold == k] - mean_a) @ turn) ** 2)
            spread += np.sum((b[fold == k] - mean_b) ** 2)
        assert found["r2_rigid"][0, 0] == pytest.approx(1 - error / spread, abs=1e-9)

    def test_a_column_of_a_layer_is_no_feature_and_serves_all(self, unrelated):
        pd = pytest.importorskip("pandas")
        x, y = unrelated
        frame = pd.DataFrame(x["a"], columns=[f"f{i}" for i in range(24)]).assign(text=[f"t{at}" for at in self.TEXTS])
        found = compare_layers({"b": x["b"], "a": frame}, y, measures="r2", blocks="text")
        assert found.widths[0] == (20, 24)
        expected = compare_layers({"b": x["b"], "a": x["a"]}, y, measures="r2", blocks=self.TEXTS)
        np.testing.assert_allclose(found["r2"], expected["r2"], atol=1e-6)
        with pytest.raises(InputError, match=r"no column 'donor'.*'text'"):
            compare_layers({"a": frame}, y, blocks="donor")

    def test_extracted_tokens_are_kept_together_unasked(self, rng, tmp_path):
        torch = pytest.importorskip("torch")
        words = torch.tensor(self.TEXTS.reshape(40, 20))
        for name in ("one", "two"):
            model = torch.nn.Sequential(torch.nn.Embedding(40, 20))
            extract(model, words, layers="0", pool="tokens", out=tmp_path / name)
        found = compare_layers(tmp_path / "one", tmp_path / "two", measures="r2")
        ignored = compare_layers(tmp_path / "one", tmp_path / "two", measures="r2", blocks="none")
        assert found["r2"][0, 0] < 0.1 and ignored["r2"][0, 0] > 0.2
        assert compare_layers(tmp_path / "one", measures="r2")["r2"][0, 0] == pytest.approx(1)

    @pytest.mark.parametrize(("count", "few"), [(19, True), (20, False)])
    def test_few_blocks_are_reported_where_something_rests_on_them(self, unrelated, count, few):
        x, y = unrelated
        blocks = np.arange(800) * count // 800
        for measure in ("r2", "epsilon", "cka"):
            codes = [alert.code for alert in compare_layers(x, y, measures=measure, blocks=blocks).alerts]
            assert ("few_blocks" in codes) == few
        assert not compare_layers(x, y, measures=lambda a, b: 1.0, blocks=blocks).alerts

    @pytest.mark.parametrize("measure", ["mcc", "r2", "epsilon"])
    def test_folds_of_one_row_are_refused(self, unrelated, measure):
        """MCC was the mean over five folds, of which four have no correlation: .004 where .7 was true."""
        x, y = unrelated
        with pytest.raises(InputError, match="A fold has fewer than 2 of the 800 rows in use"):
            compare_layers(x, y, measures=measure, blocks=np.maximum(np.arange(800) - 795, 0))

    def test_blocks_that_do_not_fit_are_refused(self, unrelated):
        x, y = unrelated
        with pytest.raises(InputError, match="blocks"):
            compare_layers(x, y, measures="r2", blocks=self.TEXTS // 10)
        with pytest.raises(InputError, match="one label for each of its 800 rows"):
            compare_layers(x, y, blocks=self.TEXTS[1:])


def test_two_folders_of_one_name_are_two_models(tmp_path):
    """Two seeds in seed0/layers and seed1/layers passed for one model, and equal layers were not compared."""
    torch = pytest.importorskip("torch")
    rows = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    folders = [tmp_path / f"seed{k}" / "layers" for k in range(2)]
    for seed, folder in enumerate(folders):
        folder.parent.mkdir()
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
        extract(model, rows, layers="0,2", out=folder)
    found = compare_layers(*folders, permutations=9)
    assert found.best["cka"].pairs == 4 and found.names == ("layers 1", "layers 2")
    assert np.isfinite(found.p_values["cka"]).all()
    # One folder by two ways is one model.
    (tmp_path / "link").symlink_to(folders[0])
    for other in (tmp_path / "link", LayerRows.open(folders[0]), str(folders[0]), None):
        again = compare_layers(folders[0], other, permutations=9)
        assert again.best["cka"].pairs == 2 and np.isnan(np.diag(again.p_values["cka"])).all()


def test_target_layers_of_different_widths_share_what_is_worked_out_of_the_source(rng):
    """Whether rows are kept is decided by the source: a wider target came first, and the next one had no rows."""
    left = {"a": rng.normal(size=(1200, 520))}
    right = {"b": left["a"] @ rng.normal(size=(520, 800)), "c": left["a"] + rng.normal(size=(1200, 520))}
    alone = compare_layers(left, {"c": right["c"]}, measures="epsilon", folds=3)
    both = compare_layers(left, right, measures="epsilon", folds=3)
    np.testing.assert_allclose(both.values["epsilon"][0, 1], alone.values["epsilon"][0, 0], rtol=1e-9)
