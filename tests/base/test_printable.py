"""Text that a terminal shows and does not obey."""

from nearid.base.printable import one_line, printable, shortened

MARK = "\N{REPLACEMENT CHARACTER}"


def test_what_a_terminal_obeys_is_replaced():
    assert printable("a\x1b[2J\x07\x9b\u202eb\nc") == f"a{MARK}[2J{MARK * 3}b\nc"
    assert one_line("a\nb\rc") == f"a{MARK}b{MARK}c"
    assert printable("naïve 雪 [red]") == "naïve 雪 [red]"


def test_long_names_keep_both_ends():
    assert shortened("run", 9) == "run" and shortened("123456789", 9) == "123456789"
    assert shortened("run-0-of-9", 9) == "run...f-9" and len(shortened("x" * 300, 60)) == 60
