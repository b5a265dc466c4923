"""English inflection: plurals, verb suffixes, articles."""

IRREGULAR_PASTS = {
    "do": "did", "drive": "drove", "get": "got", "go": "went", "make": "made", "sing": "sang", "swim": "swam",
    "take": "took",
}  # fmt: skip


def plural(noun: str) -> str:
    """The plural of an English noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else noun + "s"


def third_person(verb: str) -> str:
    """The English verb after he, she or it."""
    if verb == "have":
        return "has"
    return verb + "es" if verb.endswith("o") else plural(verb)


def with_suffix(verb: str, suffix: str) -> str:
    """The English verb with -ed or -ing: baked, studied, dancing, running."""
    if verb[-1] == "e":
        return verb[:-1] + suffix
    if verb[-1] == "y" and verb[-2] not in "aeiou" and suffix == "ed":
        return verb[:-1] + "ied"
    short = verb[-1] not in "aeiouwxy" and sum(letter in "aeiou" for letter in verb) == 1 and verb[-2] in "aeiou"
    return verb + (verb[-1] if short else "") + suffix


def past(verb: str) -> str:
    """The past of an English verb: went, took, cleaned."""
    return IRREGULAR_PASTS.get(verb) or with_suffix(verb, "ed")


def article(word: str) -> str:
    """The indefinite article before an English word."""
    said = word.lower()
    return "a" if said.startswith(("uni", "one")) or said[0] not in "aeiou" else "an"
