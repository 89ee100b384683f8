"""`nearid demo` end to end, with real training on real digits."""


def test_demo_trains_compares_and_writes_the_report(process, tmp_path):
    done = process("demo", "--out", "demo.html")
    assert done.returncode == 0, done.stderr
    assert "hidden 2 (16): seed 0" in done.stdout and "Report written to demo.html" in done.stderr
    assert "Two autoencoders" in (tmp_path / "demo.html").read_text()


def test_demo_refuses_a_bad_place_before_training(nearid):
    done = nearid("demo", "--out", "no/such/demo.html")
    assert done.returncode == 2 and "There is no folder" in done.stderr
