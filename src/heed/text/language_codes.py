"""Language codes as people write them (ko, pt-BR, zh-Hant) and as models do (ko_KR, kor_Hang)."""

import difflib
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from heed.text.languages import NAMES

# ISO 639-1: the codes of three letters, the one of the usual variety first, and for languages that NAMES lacks the name
ISO = {
    "af": "afr Afrikaans", "ak": "aka Akan", "am": "amh Amharic", "ar": "arb,ara", "as": "asm Assamese", "ay": "ayr,aym Aymara",
    "az": "azj,aze Azerbaijani", "ba": "bak Bashkir", "be": "bel Belarusian", "bg": "bul", "bm": "bam Bambara", "bn": "ben",
    "bo": "bod Tibetan", "br": "bre Breton", "bs": "bos Bosnian", "ca": "cat", "cs": "ces", "cy": "cym Welsh", "da": "dan", "de": "deu",
    "dz": "dzo Dzongkha", "ee": "ewe Ewe", "el": "ell", "en": "eng", "eo": "epo", "es": "spa", "et": "est,ekk", "eu": "eus",
    "fa": "pes,fas", "ff": "fuv,ful Fulah", "fi": "fin", "fj": "fij Fijian", "fo": "fao Faroese", "fr": "fra", "fy": "fry Western Frisian",
    "ga": "gle", "gd": "gla Scottish Gaelic", "gl": "glg", "gn": "grn,gug Guarani", "gu": "guj Gujarati", "ha": "hau Hausa", "he": "heb",
    "hi": "hin", "hr": "hrv", "ht": "hat Haitian Creole", "hu": "hun", "hy": "hye Armenian", "id": "ind", "ig": "ibo Igbo", "is": "isl",
    "it": "ita", "ja": "jpn", "jv": "jav Javanese", "ka": "kat", "kg": "kon Kongo", "ki": "kik Kikuyu", "kk": "kaz Kazakh",
    "km": "khm Khmer", "kn": "kan Kannada", "ko": "kor", "ks": "kas Kashmiri", "ku": "kmr,kur Kurdish", "ky": "kir Kyrgyz",
    "lb": "ltz Luxembourgish", "lg": "lug Ganda", "li": "lim Limburgish", "ln": "lin Lingala", "lo": "lao Lao", "lt": "lit",
    "lv": "lvs,lav", "mg": "plt,mlg Malagasy", "mi": "mri Maori", "mk": "mkd Macedonian", "ml": "mal Malayalam",
    "mn": "khk,mon Mongolian", "mr": "mar Marathi", "ms": "zsm,msa", "mt": "mlt Maltese", "my": "mya Burmese", "nb": "nob",
    "ne": "npi,nep Nepali", "nl": "nld", "nn": "nno Norwegian Nynorsk", "no": "nor", "ns": "nso Northern Sotho", "ny": "nya Nyanja",
    "oc": "oci Occitan", "om": "gaz,orm Oromo", "or": "ory,ori Odia", "pa": "pan Punjabi", "pl": "pol", "ps": "pbt,pus Pashto",
    "pt": "por", "qu": "quy,que Quechua", "rn": "run Rundi", "ro": "ron", "ru": "rus", "rw": "kin Kinyarwanda", "sa": "san Sanskrit",
    "sc": "srd Sardinian", "sd": "snd Sindhi", "sg": "sag Sango", "si": "sin Sinhala", "sk": "slk", "sl": "slv", "sm": "smo Samoan",
    "sn": "sna Shona", "so": "som Somali", "sq": "als,sqi", "sr": "srp", "ss": "ssw Swati", "st": "sot Southern Sotho",
    "su": "sun Sundanese", "sv": "swe", "sw": "swh,swa", "ta": "tam", "te": "tel", "tg": "tgk Tajik", "th": "tha", "ti": "tir Tigrinya",
    "tk": "tuk Turkmen", "tl": "tgl,fil", "tn": "tsn Tswana", "tr": "tur", "ts": "tso Tsonga", "tt": "tat Tatar", "tw": "twi Twi",
    "ug": "uig Uyghur", "uk": "ukr", "ur": "urd", "uz": "uzn,uzb Uzbek", "vi": "vie", "wo": "wol Wolof", "xh": "xho Xhosa",
    "yi": "ydd,yid Yiddish", "yo": "yor Yoruba", "zh": "zho", "zu": "zul Zulu",
}  # fmt: skip
# Codes of three letters for languages without one of two, as far as models have them
MORE = {
    "ace": "Acehnese", "acm": "Mesopotamian Arabic", "acq": "Ta'izzi-Adeni Arabic", "aeb": "Tunisian Arabic", "ajp": "South Levantine Arabic",
    "apc": "North Levantine Arabic", "ars": "Najdi Arabic", "ary": "Moroccan Arabic", "arz": "Egyptian Arabic", "ast": "Asturian",
    "awa": "Awadhi", "azb": "South Azerbaijani", "ban": "Balinese", "bem": "Bemba", "bho": "Bhojpuri", "bjn": "Banjar", "bug": "Buginese",
    "ceb": "Cebuano", "cjk": "Chokwe", "ckb": "Central Kurdish", "crh": "Crimean Tatar", "dik": "Southwestern Dinka", "dyu": "Dyula",
    "fon": "Fon", "fur": "Friulian", "hne": "Chhattisgarhi", "ilo": "Ilocano", "kab": "Kabyle", "kac": "Jingpho", "kam": "Kamba",
    "kbp": "Kabiyè", "kea": "Kabuverdianu", "kmb": "Kimbundu", "knc": "Central Kanuri", "lij": "Ligurian", "lmo": "Lombard",
    "ltg": "Latgalian", "lua": "Luba-Kasai", "luo": "Luo", "lus": "Mizo", "mag": "Magahi", "mai": "Maithili", "min": "Minangkabau",
    "mni": "Meitei", "mos": "Mossi", "nso": "Northern Sotho", "nus": "Nuer", "pag": "Pangasinan", "pap": "Papiamento", "prs": "Dari",
    "sat": "Santali", "scn": "Sicilian", "shn": "Shan", "szl": "Silesian", "taq": "Tamasheq", "tpi": "Tok Pisin", "tum": "Tumbuka",
    "tzm": "Central Atlas Tamazight", "umb": "Umbundu", "vec": "Venetian", "war": "Waray", "yue": "Cantonese",
}  # fmt: skip
SCRIPT_NAMES = {
    "arab": "Arabic script", "beng": "Bengali script", "cyrl": "Cyrillic", "deva": "Devanagari", "hans": "simplified",
    "hant": "traditional", "latn": "Latin script", "tfng": "Tifinagh",
}  # fmt: skip
USUAL_SCRIPTS = {"zh": "hans", "sr": "cyrl", "ar": "arab"}  # where a model has a language in several
SCRIPTS_OF_CHINESE = {"tw": "hant", "hk": "hant", "mo": "hant", "cn": "hans", "sg": "hans"}  # by region
SAME = {"no": "nb", "nb": "no"}  # Norwegian: a model has one or the other


@cache
def _two_letters() -> dict[str, str]:
    """ISO 639-1 codes by three-letter code."""
    return {three: two for two, entry in ISO.items() for three in entry.split()[0].split(",")}


@cache
def _codes_by_name() -> dict[str, str]:
    return {_plain_name(code).lower(): code for code in (*MORE, *ISO, *NAMES)}


def _plain_name(base: str) -> str:
    return NAMES.get(base) or MORE.get(base) or (" ".join(ISO[base].split()[1:]) if base in ISO else "")


def name(code: str) -> str:
    """The English name of a language; unknown codes are returned unchanged."""
    base, rest = _split(code)
    found = _plain_name(base)
    if found and len(rest) == 4 and rest != USUAL_SCRIPTS.get(base):
        return f"{found} ({SCRIPT_NAMES.get(rest, rest.title())})"
    return found or code


def resolve(code: str, known: Collection[str]) -> str | None:
    """The model's own code for a language code or name; None if there is none, or more than one."""
    if code in known:
        return code
    base, rest = _split(_codes_by_name().get(code.strip().lower(), code))
    for wanted in (base, SAME.get(base)):
        same = {own: _split(own)[1] for own in known if _split(own)[0] == wanted}
        usual = USUAL_SCRIPTS.get(base)
        if len(rest) == 4:  # a script, which must be the model's
            found = [own for own, script in same.items() if rest == (script if len(script) == 4 else usual or rest)]
        else:
            found = [own for own, script in same.items() if script in (rest, usual)] or list(same)
        if len(found) == 1:
            return found[0]
    return None


@cache
def public_codes(known: tuple[str, ...]) -> Mapping[str, str]:
    """A model's own codes by plain code: kor_Hang by ko; the model's own if there is no plain one."""
    plain = {own: _split(own)[0] for own in known}
    named = {own: code for own, code in plain.items() if code in ISO or code in MORE}
    return MappingProxyType(
        {named[own] if own in named and resolve(named[own], known) == own else own: own for own in known}
    )


def near(code: str, known: Collection[str], most: int = 5) -> list[str]:
    """Suggestions for a code: those that look similar, or whose language has this name."""
    names = {name(own).lower(): own for own in known}
    base = _split(code)[0]
    same = [own for own in known if _split(own)[0] == base]
    alike = difflib.get_close_matches(code.lower(), [own.lower() for own in known], n=most, cutoff=0.6)
    alike = [own for found in alike for own in known if own.lower() == found]
    called = [names[found] for found in difflib.get_close_matches(code.lower(), names, n=most, cutoff=0.7)]
    return list(dict.fromkeys([*same, *called]))[:most] or alike[:most]


def base(code: str) -> str:
    """The language of a code, in two letters if possible: ko for kor_Hang and ko-KR."""
    return _split(code)[0]


@lru_cache(1 << 12)
def synonyms(code: str) -> tuple[str, ...]:
    """All codes of the language of a code, shortest first: ki and kik."""
    own = base(code)
    return (own, *(ISO[own].split()[0].split(",") if own in ISO else ()), *([SAME[own]] if own in SAME else []))


@lru_cache(1 << 12)
def _split(code: str) -> tuple[str, str]:
    """The language in two letters if possible, and its script or region: (ko, hang) for kor_Hang."""
    base, _, rest = code.strip("_").replace("_", "-").lower().partition("-")
    base = _two_letters().get(base, base)
    return base, SCRIPTS_OF_CHINESE.get(rest, rest) if base == "zh" else rest
