"""Transcripts as subtitles: lines of a few seconds, which end at pauses."""

from heed.products.recognizer import Transcription, Word

SECONDS, WORDS = 6.0, 12  # of a line, at most
PAUSE = 0.8  # seconds without a word that end a line


def lines(found: Transcription) -> list[tuple[float, float, str]]:
    """The start, end and text of each line; without word timings there is a single line."""
    groups: list[list[Word]] = []
    for word in found.words:
        if not groups or _is_full(groups[-1], word):
            groups.append([])
        groups[-1].append(word)
    made = [(own[0].start, own[-1].end, " ".join(word.text for word in own)) for own in groups]
    return made if made or not found.text else [(0.0, found.seconds, found.text)]


def _is_full(line: list[Word], word: Word) -> bool:
    late = word.end - line[0].start > SECONDS or word.start - line[-1].end > PAUSE
    return late or len(line) >= WORDS


def subrip(found: Transcription) -> str:
    """SubRip (.srt)."""
    made = enumerate(lines(found), 1)
    return "".join(f"{i}\n{stamp(start)} --> {stamp(end)}\n{text}\n\n" for i, (start, end, text) in made)


def web_vtt(found: Transcription) -> str:
    """WebVTT (.vtt)."""
    made = (f"{stamp(start, '.')} --> {stamp(end, '.')}\n{text}\n\n" for start, end, text in lines(found))
    return "WEBVTT\n\n" + "".join(made)


def stamp(seconds: float, point: str = ",") -> str:
    """A time in subtitle format."""
    milliseconds = round(1000 * seconds)
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{point}{rest % 1000:03}"
