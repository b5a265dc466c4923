"""bench.strings finds each text once, with its kind."""

from bench.strings import html_texts, page_texts, python_texts, setting_texts

MODULE = '''"""A module that is documented."""
WORDS = {"verb": "a string of several words"}
def check(path):
    """A function that is documented."""
    option("--top", help="how many to list")
    print(f"{path}: all is well")
    if not path:
        raise ValueError(f"{path} is missing: " "give one")
'''


def test_strings_of_a_module_have_a_kind_each():
    found = [(kind, text) for _, kind, text in python_texts(MODULE, docstrings=False)]
    assert sorted(found) == [
        ("error", "{…} is missing: give one"),
        ("help", "how many to list"),
        ("other", "a string of several words"),
        ("said", "{…}: all is well"),
    ]
    documented = [text for _, kind, text in python_texts(MODULE, docstrings=True) if kind == "docstring"]
    assert documented == ["A module that is documented.", "A function that is documented."]


def test_pages_and_settings():
    assert [*page_texts('  close: ["Close", "닫기"],\n')] == [(1, "page", "Close"), (1, "page, Korean", "닫기")]
    assert [*html_texts("<p>\n<b>Loading</b> …</p>")] == [(2, "page", "Loading …")]
    assert [*setting_texts("[data]\nkeep = 2          # number of checkpoints\n")] == [
        (2, "setting", "number of checkpoints")
    ]
