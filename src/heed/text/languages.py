"""Names and scripts of languages, and languages in file names."""

import re
from collections.abc import Iterable
from functools import cache, lru_cache

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "ko": "Korean", "lt": "Lithuanian",
    "lv": "Latvian", "ms": "Malay", "nb": "Norwegian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
SCRIPTS = {
    "ko": ("hangul", "han"), "ja": ("kana", "han"), "zh": ("han",), "ru": ("cyrillic",), "uk": ("cyrillic",), "bg": ("cyrillic",),
    "sr": ("cyrillic", "latin"), "el": ("greek",), "ar": ("arabic",), "fa": ("arabic",), "ur": ("arabic",), "he": ("hebrew",),
    "hi": ("devanagari",), "bn": ("bengali",), "ta": ("tamil",), "te": ("telugu",), "th": ("thai",), "ka": ("georgian",),
}  # fmt: skip
# Of languages that do not compete where they are not served
MORE_SCRIPTS = {
    "arabic": "acm acq aeb ajp apc ars ary arz azb ckb prs ps sd ug", "bengali": "as mni", "cyrillic": "ba be kk ky mk mn tg tt",
    "devanagari": "awa bho hne mag mai mr ne sa", "han": "yue", "hebrew": "yi",
}  # fmt: skip
SCRIPT_CODES = {
    "arab": "arabic", "beng": "bengali", "cyrl": "cyrillic", "deva": "devanagari", "hans": "han", "hant": "han", "latn": "latin",
}  # fmt: skip
# May follow the language in a file name.
SUFFIXES = {"gz", "xz", "txt", "text", "tok", "norm", "clean", "raw", "lc", "tc"}
RANGES = {
    "hangul": ((0xAC00, 0xD7A3), (0x1100, 0x11FF), (0x3130, 0x318F)),
    "kana": ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),
    "han": ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F), (0x3005, 0x3005)),
    "cyrillic": ((0x0400, 0x052F),), "greek": ((0x0370, 0x03FF), (0x1F00, 0x1FFF)),
    "arabic": ((0x0600, 0x06FF), (0x0750, 0x077F), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)),
    "hebrew": ((0x0590, 0x05FF), (0xFB1D, 0xFB4F)),
    "devanagari": ((0x0900, 0x097F),), "bengali": ((0x0980, 0x09FF),), "tamil": ((0x0B80, 0x0BFF),), "telugu": ((0x0C00, 0x0C7F),),
    "thai": ((0x0E00, 0x0E7F),), "georgian": ((0x10A0, 0x10FF), (0x1C90, 0x1CBF)),
    "latin": ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF)),
}  # fmt: skip


@lru_cache(1 << 10)
def base_code(code: str) -> str:
    """A code without its region or script: pt of pt-BR."""
    return code.replace("_", "-").split("-")[0].lower()


def name(code: str) -> str:
    """The English name of a language; unknown codes are returned unchanged."""
    return NAMES.get(base_code(code), code)


def language_of_files(paths: Iterable[str]) -> str | None:
    """The language in the names of files, if they agree: en of train.en, val.en.gz, en.txt; pt-BR of news.pt-BR."""
    found = {_language_of_file(path) for path in paths}
    return found.pop() if len(found) == 1 else None


def _language_of_file(path: str) -> str | None:
    parts = re.split(r"[/\\]", path)[-1].split(".")
    while len(parts) > 1 and parts[-1].lower() in SUFFIXES:
        parts.pop()
    code, _, region = parts[-1].replace("_", "-").partition("-")
    if code in NAMES and (not region or (region not in NAMES and re.fullmatch("[A-Za-z]{2,4}", region))):
        return parts[-1]
    last = re.split("[-_]", parts[-1])[-1]
    return last if last in NAMES and last != parts[-1] and not (code in NAMES and region == last) else None


def scripts(code: str) -> tuple[str, ...]:
    """The scripts of a language: that of its code (ace_Arab) or the usual ones (default: Latin)."""
    named = SCRIPT_CODES.get(code.replace("_", "-").lower().rpartition("-")[2])
    return (named,) if named else SCRIPTS.get(base_code(code)) or _more_scripts().get(base_code(code), ("latin",))


@cache
def _more_scripts() -> dict[str, tuple[str]]:
    return {code: (script,) for script, codes in MORE_SCRIPTS.items() for code in codes.split()}


@lru_cache(1 << 14)
def script(char: str) -> str | None:
    """The script of a letter."""
    code = ord(char)
    return next((name for name, ranges in RANGES.items() if any(low <= code <= high for low, high in ranges)), None)
