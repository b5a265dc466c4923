"""What a teacher does with a block of lines, in three stages: subwords, its search, and the columns of the student's files."""

from collections.abc import Sequence

from heed.data.readers import Line
from heed.data.staged import Chunk, Stages
from heed.decoding.config import DecodingConfig
from heed.evaluation.translation import metrics
from heed.products.product import as_texts
from heed.products.translator import stages
from heed.products.translator.model_bundle import Hypotheses
from heed.products.translator.translator import Translator
from heed.runs.distill_config import DistillConfig
from heed.text.glossary import Glossary


def teaching_search(teacher: Translator, how: DistillConfig) -> DecodingConfig:
    beam = how.beam or max(teacher.decoding.beam, how.nbest)
    return teacher.search_config({"beam": beam, "nbest": how.nbest, "sample": False})


def teaching_stages(teacher: Translator, how: DistillConfig) -> Stages:
    """From lines to the columns of the files: sources, the targets that the student learns, and references."""
    teacher, config = teacher.toward() if teacher.bundle.undirected else teacher, teaching_search(teacher, how)

    def prepare(chunk: Chunk) -> tuple[Sequence[Line], stages.Work]:
        sources = as_texts(line.source for line in chunk.items)
        return chunk.items, stages.prepare(teacher, sources, config, Glossary(), batch_tokens=how.batch_tokens)

    def finish(prepared: tuple[Sequence[Line], stages.Work], found: Hypotheses) -> list[list[str]]:
        lines, work = prepared
        texts = [[one.text for one in own.nbest] for own in stages.finish(teacher, work, found)]
        references = [line.target for line in lines]
        return [list(work.texts), *_targets(texts, references, how), references]

    return stages.searching(teacher, prepare, finish, lambda prepared: prepared[1])


def _targets(found: Sequence[Sequence[str]], references: Sequence[str], how: DistillConfig) -> list[list[str]]:
    """The targets that the student learns for each line, `take` of them; the nearest to the reference first."""
    texts = [list(dict.fromkeys(own)) for own in found]
    if how.nbest > how.take:
        metric = dict(zip(("bleu", "chrf"), metrics(False, "13a", sentences=True), strict=False))[how.nearest]
        for own, reference in zip(texts, references, strict=True):
            own.sort(key=lambda text, reference=reference: -metric.sentence_score(text, [reference]).score)
    return [[own[number % len(own)] for own in texts] for number in range(how.take)]  # if too few, repeated
