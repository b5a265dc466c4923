"""Translation in three stages: tokenization, search, and detokenization. The stages of chunks overlap."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from heed.data import staged
from heed.decoding.config import DecodingConfig
from heed.decoding.hypothesis import Hypothesis, check_found
from heed.products.product import in_batches
from heed.products.translator.lazy_scores import Scores, token_scores
from heed.products.translator.model_bundle import Hypotheses, IdPair, Sentences
from heed.products.translator.pipeline import Job
from heed.products.translator.results import Candidate, Score, Translation, join_parts
from heed.products.translator.split import Parts, source_size, split_texts
from heed.products.translator.term_tokens import RequiredTerms, add_split_terms
from heed.text.glossary import Glossary
from heed.vocabularies.unicode import single_spaced

Translator = Any  # that of translator.py, which calls the stages
ADVICE = "shorten it, or translate it in parts (too_long='split', --too-long split)"
CHUNK = 2000  # texts that are translated together; an engine may need more to be busy


class Work(NamedTuple):
    """Texts in the parts that the model allows, as search input. `owners[i]` is the text of part i."""

    texts: Sequence[str]
    parts: list[str]
    owners: list[int]
    ids: Sentences
    prefixes: Sentences
    required: list[RequiredTerms]
    config: DecodingConfig
    glossary: Glossary
    batch_tokens: int


def translate(
    translator: Translator,
    texts: Sequence[str],
    config: DecodingConfig,
    glossary: Glossary,
    *,
    prefix: str | Sequence[str] | None,
    too_long: str,
    batch_tokens: int,
) -> list[Translation]:
    """All three stages; those of a long list overlap, chunk by chunk."""
    given = {"prefix": prefix, "too_long": too_long, "batch_tokens": batch_tokens}
    size = chunk_size(translator, config, CHUNK) if len(texts) > CHUNK and _divisible(config, prefix) else len(texts)
    if len(texts) <= size:
        work = prepare(translator, texts, config, glossary, **given)
        return finish(translator, work, search(translator, work))
    if too_long == "refuse":
        refuse_long(translator, texts, ADVICE)  # counts all texts, not those of a chunk
        given["too_long"] = "split"
    found: list[Translation] = []
    stages = searching(
        translator,
        lambda chunk: prepare(translator, chunk.items, config, glossary, **given),
        lambda work, hypotheses: finish(translator, work, hypotheses),
        numbered=True,
    )
    staged.run(staged.chunks(texts, size), stages, lambda chunk, own: found.extend(own))
    return found


def searching(
    translator: Translator,
    prepare: Callable[[staged.Chunk], Any],
    finish: Callable[[Any, Hypotheses], Any],
    work_of: Callable[[Any], Work] = lambda prepared: prepared,
    *,
    numbered: bool = False,
) -> staged.Stages:
    """The stages of every job that translates chunk by chunk: the search of a chunk, also of one that a GPU works on, overlaps with the
    other stages of those around it. `work_of` takes the search input out of what `prepare` returns.
    """
    return staged.Stages(
        prepare,
        lambda prepared: search(translator, work_of(prepared)),
        finish,
        numbered,
        begin=lambda prepared, meanwhile: begin(translator, work_of(prepared), meanwhile),
    )


def chunk_size(translator: Translator, config: DecodingConfig, usual: int) -> int:
    """How many texts are translated together: `usual`, or more if the engine of this search needs them."""
    engine = next(engine for engine in translator.engines if engine.takes(config, []))
    return max(usual, getattr(engine, "chunk", 0))


def _divisible(config: DecodingConfig, prefix: str | Sequence[str] | None) -> bool:
    """Whether chunks give the results of the whole: a sample depends on the number of its text in the list."""
    samples = config.sample or (config.rerank != "none" and config.candidates_from != "beam")
    return not samples and (prefix is None or isinstance(prefix, str))


def prepare(
    translator: Translator,
    texts: Sequence[str],
    config: DecodingConfig,
    glossary: Glossary,
    *,
    prefix: str | Sequence[str] | None = None,
    too_long: str = "split",
    batch_tokens: int = 4096,
) -> Work:
    """The first stage: tokenization."""
    parts, owners, ids = split_long(translator, texts, too_long)
    prefixes = _encode_prefixes(translator, prefix, len(texts), owners)
    required = translator.term_encoder.required(parts, glossary, config)
    return Work(texts, parts, owners, ids, prefixes, required, config, glossary, batch_tokens)


def search(translator: Translator, work: Work) -> Hypotheses:
    """The second stage: the best hypotheses for each part."""
    return translator.search_ids(work.ids, work.config, work.prefixes, work.batch_tokens, work.required)


def begin(translator: Translator, work: Work, meanwhile: Callable[[], None]) -> Callable[[], Hypotheses]:
    """The same for a device that works while the host does something else, such as the rest of the texts before."""
    job = Job(work.ids, work.prefixes, work.required, work.batch_tokens, range(len(work.ids)))
    return translator.pipeline.begin(job, work.config, meanwhile)


def finish(translator: Translator, work: Work, found: Hypotheses) -> list[Translation]:
    """The third stage: the translation of each text. Token scores and alignments are computed on demand."""
    check_found(found)
    scores = token_scores(translator.bundle, work.ids, found, work.batch_tokens)
    said = _lines(translator, [h.tokens for nbest in found for h in nbest])
    if len(said) == len(found):
        texts = [[text] for text in said]
    else:
        rest = iter(said)
        texts = [[next(rest) for _ in nbest] for nbest in found]
    parts = list(map(partial(_translation, translator), work.parts, work.ids, found, scores, texts, work.required))
    if work.owners == list(range(len(work.texts))):
        return parts
    results: list[list[Translation]] = [[] for _ in work.texts]
    for owner, part in zip(work.owners, parts, strict=True):
        results[owner].append(part)
    return [_joined(translator, work, *both) for both in zip(work.texts, results, strict=True)]


def _joined(translator: Translator, work: Work, text: str, parts: list[Translation]) -> Translation:
    """The translation of a whole text."""
    if len(parts) == 1:
        return parts[0]
    whole = join_parts(translator.source.clean(text), parts, work.config.nbest, translator)
    return add_split_terms(whole, work.glossary)


def prepare_pairs(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[IdPair]:
    """The first stage for given translations, which are scored."""
    refuse_long(translator, sources, "it cannot be scored as a whole; remove it, or shorten it")
    return translator.encode_pairs(sources, targets)


def score(translator: Translator, ids: Sequence[IdPair], batch_tokens: int = 4096) -> list[list[float]]:
    """The second: the log-probability of each token of each target."""
    return in_batches(translator.bundle.token_logprobs, ids, [len(s) + len(t) for s, t in ids], batch_tokens)


def finish_scores(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    ids: Sequence[IdPair],
    found: Sequence[list[float]],
) -> list[Score]:
    """The third."""
    special, pieces = translator.special[1], translator.target.pieces
    tokens = [pieces([*special.before, *target, special.last]) for _, target in ids]
    rows = zip(sources, targets, tokens, found, strict=True)
    return [Score(source, target, sum(own), rest, own) for source, target, rest, own in rows]


def split_long(translator: Translator, texts: Sequence[str], too_long: str) -> Parts:
    """Texts in parts that the model allows. Empty texts have no parts."""
    if too_long not in ("split", "cut", "refuse"):
        raise ValueError(f"too_long is {too_long!r}; it must be 'split', 'cut' or 'refuse'")
    if too_long == "refuse":
        refuse_long(translator, texts, ADVICE)
    return split_texts(texts, translator.source, translator.max_source, too_long == "cut")


def refuse_long(translator: Translator, texts: Sequence[str], advice: str) -> None:
    for number, text in enumerate(texts, 1):
        if (size := source_size(text, translator.source)) > (most := translator.max_source):
            raise ValueError(f"text {number} has {size} subwords, and the model reads at most {most}: {advice}")


def fitting(translator: Translator, texts: Sequence[str]) -> list[bool]:
    """Whether each text is not empty, and short enough to be translated in one piece."""
    most = translator.max_source - len(translator.special[0].before) - 1
    cleaned = [translator.source.clean(text) for text in texts]
    return [
        bool(text) and len(ids) <= most for text, ids in zip(cleaned, translator.source.encode(cleaned), strict=True)
    ]


def _encode_prefixes(
    translator: Translator, prefix: str | Sequence[str] | None, texts: int, owners: list[int]
) -> Sentences:
    """The forced tokens of each part: the prefix of its text for the first part, none for the others."""
    if prefix is None:
        return [[] for _ in owners]
    each = [prefix] * texts if isinstance(prefix, str) else list(prefix)
    if len(each) != texts:
        raise ValueError(f"{len(each):,} prefixes for {texts:,} texts: give one per text, or one for all")
    ids = translator.target.encode(each)
    translator.bundle.check_lengths("prefix", ids, translator.special[1])
    return [ids[i] if part == 0 or owners[part - 1] != i else [] for part, i in enumerate(owners)]


def _translation(
    translator: Translator,
    part: str,
    source: list[int],
    found: list[Hypothesis],
    scores: list[Scores] | None,
    texts: list[str],
    required: RequiredTerms,
) -> Translation:
    best = found[0]
    uses = translator.term_encoder.uses(required, best.tokens) if required.terms else []
    return Translation.by(
        source=part, text=texts[0], score=best.score, ids=best.tokens, inspector=translator, terms=uses,
        _rest=partial(_rest, translator, source, found, scores, texts),
    )  # fmt: skip


def _rest(
    translator: Translator, source: list[int], found: list[Hypothesis], scores: list[Scores] | None, texts: list[str]
) -> dict[str, Any]:
    """The fields of a `Translation` that are computed on first use."""
    pieces, each = translator.target.pieces, zip(texts, found, scores or [h.scores for h in found], strict=True)
    nbest = [Candidate(text, h.score, pieces(h.tokens), own) for text, h, own in each]
    read = translator.bundle.source_pieces(source)
    return {"tokens": nbest[0].tokens, "source_tokens": read, "nbest": nbest, "parts": []}


def _lines(translator: Translator, rows: Sequence[list[int]]) -> list[str]:
    """Each as one line: a vocabulary with bytes can spell a line break."""
    texts = translator.target.decode_all(rows)
    lines = single_spaced("\n".join(texts)).split("\n")
    return lines if len(lines) == len(texts) else [" ".join(text.split()) for text in texts]
