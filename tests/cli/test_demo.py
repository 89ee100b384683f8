"""`nearid demo` end to end, with real training on real digits; and its parts."""

import numpy as np

from nearid.cli import demo


def test_demo_trains_compares_and_writes_the_report(process, tmp_path):
    done = process("demo", "--out", "demo.html")
    assert done.returncode == 0, done.stderr
    assert "hidden 2 (16): seed 0" in done.stdout and "Report written to demo.html" in done.stderr
    assert "Two autoencoders" in (tmp_path / "demo.html").read_text()


def test_quiet_leaves_stderr_empty(nearid, monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS", 1)
    done = nearid("demo", "--out", "demo.html", "--quiet")
    assert done.returncode == 0 and done.stderr == "" and "hidden 2 (16): seed 0" in done.stdout


def test_demo_refuses_a_bad_place_before_training(nearid):
    done = nearid("demo", "--out", "no/such/demo.html")
    assert done.returncode == 2 and "There is no folder" in done.stderr


def test_states_are_seeded_and_of_the_named_widths(monkeypatch):
    monkeypatch.setattr(demo, "EPOCHS", 2)
    images = demo.digits()
    assert images.shape == (1797, 64) and images.min() >= 0 and images.max() == 1
    first, again, other = (demo.autoencoder_states(images, seed) for seed in (0, 0, 1))
    assert [s.shape[1] for s in first] == [64, 16, 64, 64]
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.allclose(first[1], other[1])
