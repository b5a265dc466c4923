"""Korean inflection: final consonants of syllables, particles, and verb endings."""

from functools import cache
from typing import NamedTuple

VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
# Forms after a consonant: forms after a vowel.
PARTICLES = {"은": "는", "이": "가", "을": "를", "아": "야", "과": "와", "으로": "로"}
IRREGULAR = {
    ("나", "이"): "내가", ("저", "이"): "제가", ("너", "이"): "네가", ("누구", "이"): "누가", ("뭐", "을"): "뭘",
}  # fmt: skip
CONTRACTIONS = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ"}  # of a stem vowel and 아/어


def final_consonant(word: str) -> str:
    """The final consonant of the last syllable (batchim), or '' if it is open."""
    return FINALS[(ord(word[-1]) - 0xAC00) % 28].strip()


def vowel(word: str) -> str:
    """The vowel of the last syllable."""
    return VOWELS[(ord(word[-1]) - 0xAC00) // 28 % 21]


def with_final(word: str, consonant: str) -> str:
    """The word with `consonant` at the end of its last syllable, or none for ''."""
    code = ord(word[-1]) - 0xAC00
    return word[:-1] + chr(0xAC00 + code - code % 28 + FINALS.index(consonant or " "))


def with_vowel(word: str, new: str) -> str:
    """The word with the vowel of its open last syllable replaced by `new`."""
    code = ord(word[-1]) - 0xAC00
    return word[:-1] + chr(0xAC00 + code // 588 * 588 + VOWELS.index(new) * 28)


def attach_particle(word: str, particle: str) -> str:
    """The word with a particle, named by its form after a consonant (은 이 을 아 과 으로), in the form that fits the word."""
    if (word, particle) in IRREGULAR:
        return IRREGULAR[word, particle]
    closed = final_consonant(word) not in ("", "ㄹ") if particle == "으로" else final_consonant(word)
    return word + (particle if closed else PARTICLES.get(particle, particle))


class Stem(NamedTuple):
    """A verb without its ending, and its irregular class: 'ㅂ', 'ㄷ', 'ㅅ', '르' or ''."""

    text: str
    irregular: str = ""


@cache
def infinitive(stem: Stem) -> str:
    """The form with 아/어: 가, 먹어, 해, 들어, 도와, 지어, 불러."""
    text, irregular = stem
    if text[-1] == "하":
        return text[:-1] + "해"
    if irregular == "르":
        return with_final(text[:-1], "ㄹ") + ("라" if vowel(text[:-1]) in "ㅏㅗ" else "러")
    if irregular == "ㅂ":
        return with_final(text, "") + ("와" if text in ("돕", "곱") else "워")
    ending = "아" if vowel(text) in "ㅏㅗ" and final_consonant(text) != "ㅆ" else "어"
    if final_consonant(text):
        return {"ㄷ": with_final(text, "ㄹ"), "ㅅ": with_final(text, "")}.get(irregular, text) + ending
    if vowel(text) == "ㅡ":
        return with_vowel(text, "ㅏ" if len(text) > 1 and vowel(text[:-1]) in "ㅏㅗ" else "ㅓ")
    if vowel(text) in CONTRACTIONS:
        return with_vowel(text, CONTRACTIONS[vowel(text)])
    return text + ending if vowel(text) in "ㅟㅢ" else text


def past_stem(stem: Stem) -> Stem:
    """The past stem: 갔, 먹었, 했."""
    return Stem(with_final(infinitive(stem), "ㅆ"))


def with_eu_ending(stem: Stem, ending: str) -> str:
    """The stem with an ending that takes 으 after a consonant: ㄹ, ㄴ, ㅂ시다, 면, 세요, 십시오, 시."""
    text, irregular = stem
    if irregular == "ㅂ":
        text = with_final(text, "") + "우"
    elif final_consonant(text) not in ("", "ㄹ"):
        text = {"ㄷ": with_final(text, "ㄹ"), "ㅅ": with_final(text, "")}.get(irregular, text) + "으"
    if ending[0] in FINALS:
        return with_final(text, ending[0]) + ending[1:]
    return (with_final(text, "") if ending[0] in "세십시" else text) + ending


def written(stem: Stem, is_state: bool) -> str:
    """The stem in 해라체, as one writes: 간다, 먹는다, 만든다; of a state 크다, of the past 갔다."""
    last = final_consonant(stem.text)
    if is_state or last in ("ㅆ", "ㅄ") or stem.text[-1] == "싶":
        return stem.text + "다"
    return with_final(stem.text, "ㄴ") + "다" if last in ("", "ㄹ") else stem.text + "는다"


def formal(stem: Stem, tail: str) -> str:
    """The stem in 합니다체: 갑니다, 먹습니다, 팝니다; `tail` is 다 or 까."""
    closed = final_consonant(stem.text) not in ("", "ㄹ")
    return (stem.text + "습" if closed else with_final(stem.text, "ㅂ")) + "니" + tail
