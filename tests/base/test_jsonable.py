"""What JSON can say."""

import math

from nearid.base.jsonable import finite


def test_finite_replaces_what_json_cannot_say():
    assert finite({"a": [1.0, math.nan, (math.inf, "x")], "b": None}) == {"a": [1.0, None, [None, "x"]], "b": None}
