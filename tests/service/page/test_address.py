"""The address says which view is shown; whatever else it says, there is one."""

import pytest


@pytest.mark.parametrize("name", ["constructor", "toString", "__proto__", "none"])
def test_a_view_that_there_is_not_is_the_first(visit, name):
    page = visit(f"#{name}")
    assert page.locator("#view-translate").is_visible()
    assert page.title().endswith("· Heed")
