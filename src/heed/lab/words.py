"""Subword pieces for display: labels, grouping into words, word alignment, and text layout."""

from unicodedata import category, east_asian_width

from heed.lab.attention import Look

WORD_START = "\u2581"  # SentencePiece's marker of the start of a word


def is_special(token: str) -> bool:
    """Whether a token is special, such as '</s>'."""
    return token in ("<pad>", "<unk>", "<s>", "</s>")


def label(token: str) -> str:
    """Return a piece without SentencePiece's marker; a piece that is only the marker becomes an open box."""
    return token.removeprefix(WORD_START).replace(WORD_START, " ") or "\u2423"


def starts_word(tokens: list[str], index: int) -> bool:
    """Whether a word starts at a piece."""
    token = tokens[index]
    return index == 0 or token.startswith(WORD_START) or is_special(token) or is_special(tokens[index - 1])


def words(tokens: list[str]) -> list[list[int]]:
    """Group the indices of pieces by word."""
    groups: list[list[int]] = []
    for index in range(len(tokens)):
        if starts_word(tokens, index):
            groups.append([])
        groups[-1].append(index)
    return groups


def aligned_words(look: Look) -> list[tuple[int, int]]:
    """Return the alignment as pairs of indices into `words`; empty if pieces and words do not match."""
    sides = []
    for tokens, text in ((look.source, look.source_text), (look.target, look.target_text)):
        groups = [number for number, group in enumerate(words(tokens)) if not is_special(tokens[group[0]])]
        if len(groups) != len(text.split()):
            return []
        sides.append(groups)
    return [(sides[0][source], sides[1][target]) for source, target in look.alignment]


def one_line(text: str) -> str:
    """Return a text on one line: control characters and whitespace become spaces, invisible ones are dropped."""
    shown = (" " if char.isspace() or category(char) == "Cc" else char for char in text if category(char) != "Cf")
    return "".join(shown)


def width(text: str) -> float:
    """Return the rough width of a text in ems."""
    return sum((1.0 if east_asian_width(char) in "WF" else 0.62 for char in text), 0.0)


def wrap(text: str, ems: int | float) -> list[str]:
    """Break a text into lines of at most `ems`, between words where possible."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if width(longer) <= ems:
            lines[-1] = longer
            continue
        lines.append("")
        for char in word:
            if width(lines[-1] + char) > ems:
                lines.append("")
            lines[-1] += char
    return [line for line in lines if line] or [""]
