from nearid.questions.extract.store import file_stems


def test_files_are_plain_distinct_and_leave_reserved_names():
    stems = file_stems(["a/b", "a b", "A_b", "ids", "../../etc", "relu#2", "x" * 300])
    assert len({s.lower() for s in stems.values()}) == 7
    assert stems["relu#2"] == "relu#2" and stems["ids"] == "ids_2"
    assert not any("/" in s or s.startswith(".") for s in stems.values())
    assert max(map(len, stems.values())) <= 124
