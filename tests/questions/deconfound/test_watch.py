"""Stages add up, by the clock and of the processor."""

import time

from nearid.questions.deconfound.watch import Watch


def test_a_stage_adds_up():
    watch = Watch()
    for _ in range(2):
        with watch.stage("nap"):
            time.sleep(0.02)
    with watch.stage("work"):
        began = time.process_time()
        while time.process_time() - began < 0.02:
            pass
    assert watch.seconds["nap"] >= 0.04 and watch.core_seconds["nap"] < 0.04
    assert watch.core_seconds["work"] >= 0.02 and list(watch.seconds) == ["nap", "work"]
