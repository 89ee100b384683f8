"""Every page in a real browser: on a phone, on a desk and on paper nothing is lost, and all text is legible."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nearid import ICA, compare, compare_heads, compare_layers, deconfound, lipschitz, score
from nearid.lab.framework.experiment import Column
from nearid.show.page import page

PAGES = (
    "comparison",
    "comparisons",
    "layers",
    "score",
    "unmixing",
    "deconfounding",
    "lipschitz",
    "heads",
    "experiment",
)
# Pixels between the margins; those of paper are of A4.
VIEWS = {"phone": 400, "laptop": 1100, "desk": 1400, "paper": 718}
# How the blocks of every page lie; NEARID_STORE_LAYOUTS=1 writes it anew, after a look at the pages.
LAYOUTS = Path(__file__).with_name("layouts.json")
RUN = "runs/a-rather-long-name-of-an-experiment/seed-{}/embeddings.npy"

# Opens the pages in a frame of each width and looks for what sticks out of the page, or of a box that scrolls; for
# text that sticks out of its figure; and for text of tables with little contrast.
LOOK = """
function luminance(rgb) {
  const [r, g, b] = rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
}
function numbers(colour) { return colour.match(/[\\d.]+/g).map(Number); }
function behind(node) {
  for (let n = node; n; n = n.parentElement) {
    const colour = numbers(getComputedStyle(n).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
  }
  return [255, 255, 255];
}
function contrast(node) {
  const both = [numbers(getComputedStyle(node).color).slice(0, 3), behind(node)].map(luminance).sort((a, b) => b - a);
  return (both[0] + .05) / (both[1] + .05);
}
function scrolls(node) {
  const above = node.parentElement;
  return above !== null && (/auto|scroll/.test(getComputedStyle(above).overflowX) || scrolls(above));
}
function named(node) { return `${node.tagName} ${node.getAttribute('class')} ${node.textContent.slice(0, 60)}`; }
function look(frame, view) {
  const document = frame.contentDocument, width = frame.clientWidth, body = [...document.body.querySelectorAll("*")];
  const hidden = "svg, script, details:not([open]) > :not(summary)";
  const seen = body.filter(n => !n.closest(hidden) && n.getClientRects().length);
  // Only on a phone may boxes scroll.
  const mayScroll = view === "phone";
  const sticksOut = n => {
    const box = n.closest(".scroll"), edge = box ? Math.min(width, box.getBoundingClientRect().right) : width;
    return n.getBoundingClientRect().right > edge + 1;
  };
  const out = seen.filter(n => sticksOut(n) && !(mayScroll && scrolls(n)));
  const cut = [...document.querySelectorAll(".plot")].flatMap(plot => {
    const box = plot.getBoundingClientRect();
    return [...plot.querySelectorAll("svg text")].filter(text => {
      const r = text.getBoundingClientRect();
      const beyond = Math.max(box.left - r.left, r.right - box.right, box.top - r.top, r.bottom - box.bottom);
      return r.width && beyond > 2;
    });
  });
  const texts = "th, td, th *, td *, .head, .pair, li, p";
  const cells = seen.filter(n => n.matches(texts) && n.textContent.trim());
  return {
    out: out.map(named), cut: cut.map(named),
    page: document.documentElement.scrollWidth,
    faint: cells.filter(n => contrast(n) < 4.5).map(n => `${named(n)} ${contrast(n).toFixed(2)}`),
    columns: document.querySelectorAll("table th").length, figures: document.querySelectorAll(".plot svg").length,
    unmarked: [...document.querySelectorAll(".scroll")].filter(n => n.tabIndex !== 0).length,
    layout: layout(seen, document),
  };
}
// Where each block begins and how wide it is, in tenths of the page; and how high a figure is, in tenths of its width.
function layout(seen, document) {
  const page = document.body.getBoundingClientRect(), tenths = share => Math.round(10 * share);
  return seen.filter(n => n.matches(".verdict, .alerts, .scroll, dl.facts, .plot")).map(n => {
    const box = n.getBoundingClientRect(), high = n.matches(".plot") ? tenths(box.height / box.width) : 0;
    return [n.className, tenths((box.left - page.left) / page.width), tenths(box.width / page.width), high];
  });
}
function onPaper(document) {
  for (const rule of document.styleSheets[0].cssRules) {
    if (rule.media) rule.media.mediaText = rule.media.mediaText.replace(/screen.*/, "not all").replace("print", "all");
  }
}
async function all(names, views) {
  const seen = {};
  for (const name of names) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width: ${Object.values(views)[0]}px; height: 900px; border: 0`;
    document.body.append(frame);
    await new Promise(done => { frame.onload = done; frame.src = `${name}.html`; });
    for (const [view, width] of Object.entries(views)) {
      frame.style.width = `${width}px`;
      if (view === "paper") onPaper(frame.contentDocument);
      await new Promise(done => setTimeout(done, 100));
      seen[`${name}-${view}`] = look(frame, view);
    }
    frame.remove();
  }
  document.body.textContent = JSON.stringify(seen);
}
"""


def _results():
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(300, 4))
    y, z = (x @ rng.normal(size=(4, 4)) + s * rng.normal(size=(300, 4)) for s in (0.1, 0.5))
    names = [RUN.format(k) for k in range(3)]
    states = {f"encoder.block{k}": np.tanh((k + 1) * x) for k in range(12)}
    factors = {"the position of the object along x": x[:, 0], "size": x[:, 1], "shape": np.where(x[:, 2] > 0, "a", "b")}
    labels, batches = rng.choice(["DMSO", "a compound with a long name, 10 uM"], 300), rng.integers(0, 6, 300)
    both = {"groups": "all", "in_sample": True, "symmetric": True}
    return {
        "comparison": lambda: page(compare(x, y, names=names[:2], **both).view),
        "comparisons": lambda: page(compare(x, y, z, names=names).view),
        "layers": lambda: page(compare_layers(states, states, names=names[:2], measures="cka,r2").view),
        "score": lambda: page(score(y, factors, measures="mcc,r2,infomec", resolve="ica", permutations=2).view),
        "unmixing": lambda: page(ICA(n_components=4).fit(y).view),
        "deconfounding": lambda: page(
            deconfound(y, labels, batches, control="DMSO", classifiers="logistic", folds=3, drop=0.1).view
        ),
        "lipschitz": lambda: page(lipschitz(pytest.importorskip("torch").sinh, x[:50], name=names[0]).view),
        "heads": lambda: page(compare_heads(x[:20], y[:20], z, x, names=names[:2], draws=9).view),
    }


@pytest.fixture(scope="module")
def looks(tmp_path_factory, browser, result):
    """What the browser sees of every page in every view, from a single start."""
    folder = tmp_path_factory.mktemp("pages")
    columns = [Column("score", f"score {k}") for k in range(12)]
    wide = replace(result, experiment=replace(result.experiment, columns=columns, claims=()))
    texts = {name: make() for name, make in _results().items()} | {"experiment": page(wide.view)}
    assert tuple(texts) == PAGES
    for name, text in texts.items():
        # Of several pairs the first is enough.
        text = re.sub(r'<section class="pairsection" id="part[12]">.*?</section>', "", text, flags=re.DOTALL)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    script = f"{LOOK}all({json.dumps(PAGES)}, {json.dumps(VIEWS)});"
    (folder / "all.html").write_text(f"<body><script>{script}</script></body>", encoding="utf-8")
    switches = ("--dump-dom", "--allow-file-access-from-files", "--virtual-time-budget=60000")
    dom = browser(folder / "profile", folder / "all.html", *switches).stdout
    return json.loads(re.search(r"<body>(\{.*\})</body>", dom, re.DOTALL)[1])


@pytest.mark.browser
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_lost_and_all_is_legible(name, view, looks):
    seen = looks[f"{name}-{view}"]
    assert seen["figures"] and (seen["columns"] or name == "layers")
    assert seen["out"] == [] and seen["page"] <= VIEWS[view]
    assert seen["cut"] == []
    assert seen["faint"] == []
    # Whoever has no mouse can scroll a table too.
    assert seen["unmarked"] == 0


@pytest.mark.browser
def test_pages_look_as_they_did_when_they_were_looked_at(looks):
    """Blocks, their columns and the forms of figures are as stored, to a tenth: whatever fonts a machine has."""
    found = {place: seen["layout"] for place, seen in looks.items()}
    if os.environ.get("NEARID_STORE_LAYOUTS"):
        lines = ",\n".join(f"{json.dumps(place)}: {json.dumps(blocks)}" for place, blocks in found.items())
        LAYOUTS.write_text(f"{{\n{lines}\n}}\n")
    stored = json.loads(LAYOUTS.read_text())
    assert set(found) == set(stored)
    for place, blocks in found.items():
        assert [kind for kind, *_ in blocks] == [kind for kind, *_ in stored[place]], place
        moved = np.abs(np.array([b[1:] for b in blocks]) - np.array([b[1:] for b in stored[place]]))
        assert moved.max() <= 1, place
