"""Codes of languages: what people write finds what a model has, and the names are those of the languages."""

import pytest

from heed.text.language_codes import ISO, MORE, name, near, public_codes, resolve

NLLB = (
    "ace_Arab", "ace_Latn", "arb_Arab", "arb_Latn", "deu_Latn", "eng_Latn", "kor_Hang", "nob_Latn", "pes_Arab", "por_Latn", "srp_Cyrl",
    "tgl_Latn", "yue_Hant", "zho_Hans", "zho_Hant",
)  # fmt: skip
MBART = ("ar_AR", "de_DE", "en_XX", "ko_KR", "pt_XX", "tl_XX", "zh_CN")
M2M = ("ar", "ast", "de", "en", "ko", "no", "zh")


@pytest.mark.parametrize("written", ["ko", "kor", "kor_Hang", "ko_KR", "ko-KR", "KO", "Korean", "korean", " Korean "])
def test_korean_is_found_however_it_is_written(written):
    assert [resolve(written, own) for own in (NLLB, MBART, M2M)] == ["kor_Hang", "ko_KR", "ko"]


@pytest.mark.parametrize(
    ("written", "own"),
    [
        ("zh", "zho_Hans"), ("zh-CN", "zho_Hans"), ("zh-TW", "zho_Hant"), ("zh-Hant", "zho_Hant"), ("Chinese", "zho_Hans"),
        ("ar", "arb_Arab"), ("ara", "arb_Arab"), ("arb_Latn", "arb_Latn"), ("no", "nob_Latn"), ("nb", "nob_Latn"), ("fil", "tgl_Latn"),
        ("pt-BR", "por_Latn"), ("fa", "pes_Arab"), ("Cantonese", "yue_Hant"), ("ace_Arab", "ace_Arab"), ("ace", None), ("xx", None),
        ("de_Hang", None), ("", None),
    ],
)  # fmt: skip
def test_scripts_regions_and_aliases(written, own):
    assert resolve(written, NLLB) == own


def test_a_plain_code_stands_for_one_language_and_comes_back():
    for known in (NLLB, MBART, M2M):
        plain = public_codes(known)
        assert list(plain.values()) == list(known)
        assert [resolve(code, known) for code in plain] == list(known)
    assert list(public_codes(NLLB))[:5] == ["ace_Arab", "ace_Latn", "ar", "arb_Latn", "de"]
    assert {"yue", "zh", "zho_Hant", "nb"} <= {*public_codes(NLLB)} and list(public_codes(MBART))[3] == "ko"


def test_names():
    assert [name(code) for code in ("ko", "zho_Hans", "zho_Hant", "arb_Latn", "ace_Arab", "yue", "q")] == [
        "Korean", "Chinese", "Chinese (traditional)", "Arabic (Latin script)", "Acehnese (Arabic script)", "Cantonese", "q"]  # fmt: skip
    names = [name(code) for code in (*ISO, *MORE)]
    assert all(names) and not {*names} & {*ISO, *MORE}


def test_what_may_be_meant():
    codes = list(public_codes(NLLB))
    assert near("ace", codes) == ["ace_Arab", "ace_Latn"]
    assert near("Koreen", codes) == ["ko"] and near("germann", codes) == ["de"]
    assert near("xx", codes) == [] and near("klingon", codes) == []


def test_every_language_of_nllb_and_m2m_has_a_name_of_its_own():
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    from heed.vocabularies.m2m100 import M2M100

    for known in (tuple(FAIRSEQ_LANGUAGE_CODES), M2M100):
        plain = public_codes(known)
        names = [name(code) for code in plain]
        assert len({*names}) == len(names) and not {*names} & {*plain}
        assert [resolve(own, known) for own in names if "(" not in own] == [
            plain[code] for code in plain if "(" not in name(code)
        ]
