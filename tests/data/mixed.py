"""Random lines of all kinds that a tokenizer may be given, drawn by a seed."""

import random
import unicodedata

PLAIN = [
    "the dog sees a red house .", "she never finds the street, does she?", "A child likes bread and 12,000 cats.",
    "der Hund sieht ein rotes Haus.", "Die Straße über Köln ist schön; größer als früher!", "meine Schwester mag das Café",
    "나는 어제 학교에 갔다.", "오늘 날씨가 정말 좋네요!", "그 개는 빨간 집을 본다", "한국어 문장을 번역해 주세요?", "이것은 <예> 입니다",
    "it's what I'd said; we're \"here\"", "e-mail: a.b@example.org (2024-01-31)", "«Ja», sagte er … „nein“ – doch",
]  # fmt: skip
ODD = [
    "🙂", "👩‍👩‍👧", "🇰🇷", "☃☃", "\t", "\x00", "\x01\x7f", "\x85", "\x1f", "\u200b", "\u200d", "\ufeff", "\u2028", "\u3000", "\xa0", "\n",
    "\r\n", "▁", "▁▁a", "ﬁ ① Å ﷺ", "a\u0300\u0301", "ㅎㅏㄴ", "\ufffd", "\U0010ffff", "漢字かな", "עברית", "  ", " ", "   x   ", "<", ">", "<<", ">>",
    "</", "<mask", "<unk_", "😀😀", "ſ", "İ", "\u0323\u0302",
]  # fmt: skip
SPECIAL_TOKENS = [
    "<s>", "</s>", "<pad>", "<unk>", "<mask>", "<mask_1>", "<mask_2>", "<unk_2>", "<unk_102>", "<unk_103>", "<0xEB>", "<n>",
    "[MASK]", "</s></s>", "<<unk>>", "< pad >",
]  # fmt: skip
TAGS = [">>fra<<", ">>deu<<", ">>kor_Hang<<", ">> no tag <<", ">><<", ">>open", "<<fra>>"]


def training(seed: int = 0, count: int = 1000) -> list[str]:
    """Sentences of known and of invented words, to learn a vocabulary from."""
    draw = random.Random(seed)
    words = [word for text in PLAIN for word in text.split()]
    for syllables in (
        ["가", "나", "도", "러", "미", "버", "시", "은", "자", "한"],
        ["ka", "lo", "mir", "ne", "pun", "schu", "tä", "ver"],
    ):
        words += ["".join(draw.choices(syllables, k=draw.randint(2, 5))) for _ in range(500)]
    return [*PLAIN, *(" ".join(draw.choices(words, k=draw.randint(2, 12))) for _ in range(count))]


def lines(seed: int = 0, count: int = 2000) -> list[str]:
    """The odd strings by themselves, then texts that mix them."""
    draw = random.Random(seed)
    texts = [
        "",
        *ODD,
        *SPECIAL_TOKENS,
        *TAGS,
        *(f"{tag} the dog" for tag in TAGS),
        *(f"{mark}{mark} {mark}" for mark in SPECIAL_TOKENS),
    ]
    while len(texts) < count:
        parts = [_part(draw) for _ in range(draw.randint(1, 6))]
        text = draw.choice(["", " ", "  "]).join(parts)
        if draw.random() < 0.15:
            text = draw.choice(TAGS) + draw.choice(["", " "]) + text
        if draw.random() < 0.2:
            text = unicodedata.normalize("NFD", text)
        if draw.random() < 0.2:
            text = draw.choice([" ", "  ", "\t"]) + text + draw.choice([" ", "  ", "\n"])
        texts.append(text)
    return texts


def _part(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.6:
        words = draw.choice(PLAIN).split()
        start = draw.randrange(len(words))
        return " ".join(words[start : start + draw.randint(1, 4)])
    if kind < 0.75:
        return draw.choice(ODD)
    if kind < 0.9:
        return draw.choice(SPECIAL_TOKENS + TAGS)
    most = draw.choice([0x250, 0x3000, 0x11000, 0x110000])
    return "".join(char for char in map(chr, draw.choices(range(most), k=3)) if unicodedata.category(char) != "Cs")


def ids(size: int, seed: int = 0, count: int = 200) -> list[list[int]]:
    """Random ids, as an untrained model might output them."""
    draw = random.Random(seed)
    return [draw.choices(range(size), k=draw.randint(0, 12)) for _ in range(count)]
