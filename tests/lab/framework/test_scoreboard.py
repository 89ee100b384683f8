"""The scoreboard: one rule for what is compared, claims counted, the command that gives a result, and the figures."""

import math
from dataclasses import replace

import pytest

from nearid.lab.framework.cells import cells_of
from nearid.lab.framework.claims import Claim, all_of, at_least
from nearid.lab.framework.experiment import Section
from nearid.lab.framework.run import plan, reproduce
from nearid.lab.framework.scoreboard import (
    all_published,
    brief,
    command,
    compared,
    counts,
    figure,
    over_seeds,
    reason,
    scores,
    training,
    view_of_results,
)
from nearid.lab.framework.settings import assignments
from nearid.show.svg import picture
from nearid.show.terminal import text
from toy_experiments import TOY
from toy_results import Inline


def run(**options):
    return reproduce(TOY, engine=Inline(), **options)


def test_the_first_score_with_a_published_value_over_all_rows_that_were_run(result):
    both = compared(result)
    assert both.column.key == "score" and [row.key for row in both.rows] == ["low", "high"]
    assert both.published == (0.5, 0.87) and both.published_range == "0.50 to 0.87"
    means = [result.estimate(key, "score").value for key in ("low", "high")]
    row, difference = both.largest
    assert row.key == "high" and difference == pytest.approx(means[1] - 0.87)


def test_rows_without_a_result_are_not_compared(result):
    assert [row.key for row in compared(replace(result, only=("low",))).rows] == ["low"]
    assert compared(replace(result, cells=())) is None
    bare = replace(TOY, rows=lambda p: [replace(row, published={}) for row in TOY.rows(p)])
    assert compared(replace(result, experiment=bare)) is None


def test_claims_are_counted_by_status(result):
    assert counts(result) == [2, 1, 0, 1] and sum(counts(result)) == len(TOY.claims)


@pytest.mark.parametrize(
    "options",
    [{}, {"preset": "smoke"}, {"seeds": 2, "rows": ["high"], "parameters": {"sizes": (3, 4), "kind": "two words"}}],
)
def test_the_command_gives_the_same_cells_again(tmp_path, options):
    import shlex

    typed = shlex.split(command(run(**options)))[3:]
    given = dict.fromkeys(("--preset", "--seeds"))
    rows, sets = [], []
    for name, value in zip(typed[::2], typed[1::2], strict=True):
        {"--row": rows, "--set": sets}.get(name, []).append(value)
        given |= {name: value}
    again = plan(
        TOY,
        tmp_path,
        preset=given["--preset"] or "cpu",
        seeds=int(given["--seeds"]) if given["--seeds"] else None,
        rows=rows,
        parameters=assignments(sets),
    )
    first = run(**options)
    names = {c.name for c in cells_of(TOY, first.parameters, first.seeds, first.only)}
    assert {c.name for c in again.cells} == names


def test_claims_that_nearid_added_are_counted_apart(result):
    first, *others = TOY.claims
    added = replace(result, experiment=replace(TOY, claims=(replace(first, added=True), *others)))
    every, stated = counts(added), counts(added, stated=True)
    assert every == counts(result) and sum(every) == len(TOY.claims)
    assert [a - b for a, b in zip(every, stated, strict=True)] == [1, 0, 0, 0]
    board = view_of_results([added], {})
    assert f"{stated[0]} of the {sum(stated)} claims that the papers state are reproduced" in board.reason
    assert [claim["added"] for claim in added.to_dict()["claims"]] == [True, *(False for _ in others)]
    short = view_of_results([run(preset="smoke")], {})
    assert short.headline == "No claim was judged." and short.reason.endswith(
        "The preset smoke is too short to judge any."
    )
    assert "(Added by nearid.)" in text(added.view, 120) and "(Added by nearid.)" not in text(result.view, 120)


def test_intervals_are_over_seeds_only_if_seeds_change_more_than_folds(result):
    assert over_seeds(result) and not over_seeds(replace(result, seeds=(0, 1)))
    given = replace(result, experiment=replace(TOY, seeds_draw="folds"))
    assert not over_seeds(given) and given.view.facts["measured"].endswith("Seeds draw folds")


def test_figures(result):
    drawn = figure(result)
    assert list(drawn.groups) == ["measured", "published"] and len(drawn.rows) == 2
    assert [e.value for e in drawn.groups["published"]] == [0.5, 0.87]
    assert list(scores("score", "vanished")(result).groups) == ["measured", "published"]
    assert scores("vanished")(result) is None and training(result, "vanished") is None
    walk = training(result, "walk", ["high"])
    seeds = [f.data["curves"]["walk"]["y"] for f in result.of_row("high")]
    assert list(walk.curves) == ["high"] and walk.curves["high"].y[0] == pytest.approx(sum(y[0] for y in seeds) / 3)
    assert len(all_published(result).rows) == 2 and all_published(replace(result, cells=())) is None
    own = replace(TOY, section=Section(figure=lambda result: walk))
    assert figure(replace(result, experiment=own)) is walk
    none = replace(TOY, section=Section(figure=lambda result: None))
    assert figure(replace(result, experiment=none)) == drawn


def test_a_section_has_its_line_and_the_reasons_of_claims_that_are_not_reproduced(result):
    told = replace(TOY, section=Section(brief=("score", "rises", "{low:score}, {high:walk^}"), reasons={"": "Short."}))
    known = replace(result, experiment=told)
    low = f"{result.estimate('low', 'score').value:.2f}"
    assert brief(known)[:2] == ("score", "rises") and brief(known)[2].startswith(f"{low}, +")
    row = next(row for row in view_of_results([known], {}).tables[0].rows if row.cells[0] == "toy")
    assert row.cells[1:4] == list(brief(known))
    # Rows that were not run leave the rule, and claims have no line.
    assert brief(replace(known, only=("low",))) is None and brief(result) is None
    whys = {o.status: reason(c, o, known) for c, o in known.outcomes}
    assert whys["not reproduced"] == "Short." and whys["reproduced"] == whys["not testable here"] == ""
    bare = {o.status: reason(c, o, result) for c, o in result.outcomes}
    assert bare["not reproduced"] == "No reason is known."


def test_undecided_claims_say_what_the_seeds_lack(result):
    def why(*tests):
        claim = Claim("It is.", all_of(*tests))
        return reason(claim, claim.test(result), result)

    value = result.estimate("high", "score")
    meets, misses = value.value - (value.high - value.low) / 8, value.value + (value.high - value.low) / 8
    assert why(at_least("high", "score", meets)).startswith("The mean meets the threshold. With this spread about ")
    assert why(at_least("high", "score", misses)).startswith("The mean misses the threshold.")
    both = why(at_least("high", "score", meets), at_least("high", "score", misses))
    assert both.startswith("2 comparisons are open; in 1 of them the mean meets the threshold. With this spread about ")
    one = replace(result, seeds=(0,), cells=[f for f in result.cells if f.cell.seed == 0])
    claim = Claim("It is.", at_least("high", "score", meets))
    assert reason(claim, claim.test(one), one) == "The seeds do not decide."


def test_a_training_curve_has_a_gap_where_a_seed_has_no_finite_value_and_says_how_many_seeds_it_is_of(result):
    assert training(result, "walk").caption == "Each line is the mean over 3 seeds."
    *others, last = result.cells
    walk = last.data["curves"]["walk"]
    gap = replace(last, data=last.data | {"curves": {"walk": walk | {"y": [None, *walk["y"][1:]]}}})
    drawn = training(replace(result, cells=[*others, gap]), "walk")
    assert math.isnan(drawn.curves["high"].y[0]) and all(map(math.isfinite, drawn.curves["high"].y[1:]))
    assert picture(drawn).svg
    fewer = training(replace(result, cells=others), "walk")
    assert fewer.caption == "Each line is the mean over 2 to 3 seeds."
