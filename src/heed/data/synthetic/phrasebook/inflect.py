"""How English words take their forms: plurals, the endings of verbs, articles."""


def plural(noun: str) -> str:
    """The plural of an English noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else noun + "s"


def third(verb: str) -> str:
    """The English verb after he, she or it."""
    return verb + "es" if verb.endswith("o") else plural(verb)


def lengthened(verb: str, ending: str) -> str:
    """The English verb with -ed or -ing: baked, studied, dancing, running."""
    if verb[-1] == "e":
        return verb[:-1] + ending
    if verb[-1] == "y" and verb[-2] not in "aeiou" and ending == "ed":
        return verb[:-1] + "ied"
    short = verb[-1] not in "aeiouwxy" and sum(letter in "aeiou" for letter in verb) == 1 and verb[-2] in "aeiou"
    return verb + (verb[-1] if short else "") + ending


def article(word: str) -> str:
    """The indefinite article before an English word."""
    return "an" if word[0] in "aeiou" else "a"
