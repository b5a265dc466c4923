"""How Korean words take their forms: syllables and their last consonants, particles, and the endings of verbs."""

from functools import cache
from typing import NamedTuple

VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
PARTICLES = {
    "은": "는",
    "이": "가",
    "을": "를",
    "아": "야",
    "과": "와",
    "으로": "로",
}  # after a consonant: after a vowel
FUSED = {("나", "이"): "내가", ("저", "이"): "제가", ("너", "이"): "네가", ("누구", "이"): "누가", ("뭐", "을"): "뭘"}
MERGED = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ"}  # stem vowel + 아/어, where the two become one


def final(word: str) -> str:
    """The consonant that closes the last syllable (batchim), or '' where it is open."""
    return FINALS[(ord(word[-1]) - 0xAC00) % 28].strip()


def vowel(word: str) -> str:
    """The vowel of the last syllable."""
    return VOWELS[(ord(word[-1]) - 0xAC00) // 28 % 21]


def close(word: str, consonant: str) -> str:
    """The word with its last syllable closed by `consonant`, or opened by ''."""
    code = ord(word[-1]) - 0xAC00
    return word[:-1] + chr(0xAC00 + code - code % 28 + FINALS.index(consonant or " "))


def voice(word: str, new: str) -> str:
    """The word with the vowel of its open last syllable replaced by `new`."""
    code = ord(word[-1]) - 0xAC00
    return word[:-1] + chr(0xAC00 + code // 588 * 588 + VOWELS.index(new) * 28)


def attach(word: str, particle: str) -> str:
    """The word with a particle, named by its form after a consonant (은 이 을 아 과 으로), in the form the word asks for."""
    if (word, particle) in FUSED:
        return FUSED[word, particle]
    closed = final(word) not in ("", "ㄹ") if particle == "으로" else final(word)
    return word + (particle if closed else PARTICLES.get(particle, particle))


class Stem(NamedTuple):
    """What a verb is before its ending, and how it is irregular: 'ㅂ', 'ㄷ', 'ㅅ', '르' or ''."""

    text: str
    irregular: str = ""


@cache
def infinitive(stem: Stem) -> str:
    """The form in 아/어: 가, 먹어, 해, 들어, 도와, 지어, 불러."""
    text, irregular = stem
    if text[-1] == "하":
        return text[:-1] + "해"
    if irregular == "르":
        return close(text[:-1], "ㄹ") + ("라" if vowel(text[:-1]) in "ㅏㅗ" else "러")
    if irregular == "ㅂ":
        return close(text, "") + ("와" if text in ("돕", "곱") else "워")
    ending = "아" if vowel(text) in "ㅏㅗ" and final(text) != "ㅆ" else "어"
    if final(text):
        return {"ㄷ": close(text, "ㄹ"), "ㅅ": close(text, "")}.get(irregular, text) + ending
    if vowel(text) == "ㅡ":
        return voice(text, "ㅏ" if len(text) > 1 and vowel(text[:-1]) in "ㅏㅗ" else "ㅓ")
    if vowel(text) in MERGED:
        return voice(text, MERGED[vowel(text)])
    return text + ending if vowel(text) in "ㅟㅢ" else text


def past(stem: Stem) -> Stem:
    """The stem of the past: 갔, 먹었, 했."""
    return Stem(close(infinitive(stem), "ㅆ"))


def open_ending(stem: Stem, ending: str) -> str:
    """The stem with an ending that takes 으 after a consonant: ㄹ, ㄴ, ㅂ시다, 면, 세요, 십시오."""
    text, irregular = stem
    if irregular == "ㅂ":
        text = close(text, "") + "우"
    elif final(text) not in ("", "ㄹ"):
        text = {"ㄷ": close(text, "ㄹ"), "ㅅ": close(text, "")}.get(irregular, text) + "으"
    if ending[0] in FINALS:
        return close(text, ending[0]) + ending[1:]
    return (close(text, "") if ending[0] in "세십" else text) + ending


def formal(stem: Stem, tail: str) -> str:
    """The stem in 합니다체: 갑니다, 먹습니다, 팝니다; `tail` is 다 or 까."""
    closed = final(stem.text) not in ("", "ㄹ")
    return (stem.text + "습" if closed else close(stem.text, "ㅂ")) + "니" + tail
