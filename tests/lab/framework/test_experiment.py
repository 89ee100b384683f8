"""Every registered experiment is whole."""

import json
from pathlib import Path

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.registry import datasets
from nearid.lab.framework.experiment import HOMES, experiment, experiments, summary
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.scoreboard import figure
from nearid.lab.framework.settings import changed, described, parameters_for


def test_unknown_names_get_near_ones():
    with pytest.raises(InputError, match=r"no experiment named 'radical'\. Did you mean radial\?"):
        experiment("radical")


def test_all_are_listed_by_their_own_names():
    assert [e.name for e in experiments()] == list(HOMES)


USUAL = ["smoke", "cpu", "paper"]


@pytest.mark.parametrize("name", HOMES)
def test_an_experiment_is_whole(name):
    e = experiment(name)
    assert (
        list(e.presets) in (USUAL, [*USUAL, "quick"]) and e.about.endswith(".") and e.paper.url.startswith("https://")
    )
    assert all(p.seeds >= 2 for p in e.presets.values()) and e.presets["cpu"].seeds >= 3
    assert all(about for _, _, about in described(e.defaults))
    for preset in e.presets:
        parameters = parameters_for(e, preset)
        rows = e.rows(parameters)
        assert len({r.key for r in rows}) == len(rows) == len({r.title for r in rows})
        assert all(Path(r.key).name == r.key for r in rows)
        assert {c for r in rows for c in r.published} <= {c.key for c in e.columns}
        # Without any cell every claim can still be asked, and none is decided.
        empty = ExperimentResult(e, preset, parameters, (0,), (), (), {})
        untested = "not judged: preset too short" if preset == "smoke" else "not testable here"
        assert {str(o.status) for _, o in empty.outcomes} == {untested}
        assert str(empty) and (e.figures is None or list(e.figures(empty)) == [])
        # Where only published values are known, the figure has these.
        drawn = figure(empty)
        assert drawn is None or any(row.published for row in rows)
        assert reads(e, preset) <= set(datasets())


def test_sections_say_in_what_published_rows_differ_from_those_here():
    def unlike(name, **changes):
        e = experiment(name)
        return e.section.unlike(parameters_for(e, "cpu", changes))

    for name in ("contrastive-sphere", "contrastive-box"):
        assert unlike(name, n=4) == "4 latents, not 10" and unlike(name, n=10) == ""
    assert unlike("masks-contrastive") == "drawn masks, not films" and unlike("dislib") == "other images"
    assert unlike("masks-contrastive", data="kitti-masks") == unlike("dislib", data="dsprites") == ""
    assert unlike("disentanglement", data="shapes3d") == "" and unlike("diet") == ""


def reads(e, preset):
    """Names of the data sets that a preset of an experiment reads."""
    parameters = parameters_for(e, preset)
    return {name for r in e.rows(parameters) for name in e.datasets(changed(parameters, r.changes))}


def test_experiments_name_the_data_sets_that_they_read():
    cpu = {"cpc": {"cifar10"}, "mnist-autoencoders": {"mnist"}, "faces": {"faces"}, "3dident": {"3dident"}}
    cpu["pretrained-pairs"] = {"cifar10", "cifar10-resnets"}
    cpu |= {"trained-pairs": {"cifar10", "wikitext2"}, "others-networks": {"ani", "silero-vad", "cebra"}}
    cpu |= {"words": {"wikitext2"}, "gpt2-svcca": {"wikitext2", "treebank"}}
    assert {e.name: found for e in experiments() if (found := reads(e, "cpu"))} == cpu
    more = {
        "disentanglement": {"shapes3d", "mpi3d-complex", "falcor3d", "isaac3d"},
        "dislib": {"dsprites", "shapes3d", "mpi3d-toy", "mpi3d-real", "cars3d", "smallnorb"},
        "masks-contrastive": {"kitti-masks"},
    }
    assert {e.name: found for e in experiments() if (found := reads(e, "paper"))} == cpu | more


def test_every_experiment_in_the_list():
    told = json.loads(json.dumps([summary(e) for e in experiments()], allow_nan=False))
    radial = next(e for e in told if e["experiment"] == "radial")
    assert radial["shows"] == "Fig. 2" and radial["presets"]["cpu"]["seeds"] == 8 and radial["paper"]["url"]
