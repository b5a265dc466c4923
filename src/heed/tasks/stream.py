"""Shared by tasks that read one text as a stream of tokens: language models, and pre-training of encoders."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from heed.data.contamination import is_long
from heed.data.documents import DocumentKind
from heed.data.filters import FiltersConfig
from heed.data.prepare import UNFILTERED, Learning, TextFiles, counted, digest, text_stream
from heed.data.readers import Line
from heed.models.package import Package
from heed.tasks.base import Prepared, Tell
from heed.tasks.subwords import vocabulary_kind
from heed.tasks.text import TextTask
from heed.tasks.validation import trained_too
from heed.vocabularies.codes import code_ids
from heed.vocabularies.vocabulary import Pair

Lines = Callable[[], Iterable[Line]]


class StreamTask(TextTask):
    """Lines of text, stored as one stream of tokens."""

    unit, one_sided, filtered = "texts", True, False

    def boundaries(self) -> DocumentKind | None:
        """What counts as a document; None if the text is one."""
        raise NotImplementedError

    def check_validation(self, recipe: Any, valid: list[Line]) -> None:
        """Refuse a validation text that lacks what is measured, before anything is encoded."""

    def _check_length(self, recipe: Any) -> None:
        if recipe.filters not in (None, FiltersConfig()):
            raise ValueError("filters are for pairs: a language model reads all of its text unchanged")

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        """One text, line by line. Without validation files, its last lines are set aside, or those of each corpus."""
        files = TextFiles(recipe.data, one_sided=True, tell=tell)
        train, valid, held = files.train, files.valid(), [0]
        document = self.boundaries()
        if not valid:
            train, valid, held = hold_out(files, document is not None, tell)
        self.check_validation(recipe, valid)
        settings = held if document is None else [document, held]
        texts, earlier = files.key("language", *settings), files.key("language", *settings, edition=UNFILTERED)
        codes = [one.code for one in files.data.parts]
        tags = tuple(dict.fromkeys(code for code in codes if code))
        learning = Learning(recipe.subwords, vocabulary_kind(self, recipe), one_sided=True, tags=tags)
        text = base.vocabularies[0] if base is not None else learning.pair(train, texts, tell)[0]
        code_ids(text, codes)  # one that the vocabulary does not have is refused here
        named = [codes] if tags else []
        key = digest(texts, text.key(), *named)
        stream = text_stream(key, train, text, sum(held), tell, document)
        earlier = digest(earlier, text.key(), *named, edition=UNFILTERED)
        sizes, chosen = self.sizes((text, text), base), {} if base is not None else learning.chosen(texts)
        return Prepared(key, stream, valid, {"text": text}, sizes, earlier_keys=[earlier], chosen=chosen)

    def trained_too(self, recipe: Any, prepared: Prepared) -> list[str]:
        texts = [line.source for line in prepared.valid if is_long(line.source)]
        return trained_too(prepared.train.folder, {"text": texts})

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, Any]:
        return {} if base is not None else {"vocab_size": len(pair[0])}

    def longest(self, recipe: Any, prepared: Prepared, max_length: int) -> int:
        return 0  # a text is cut into windows


def hold_out(files: TextFiles, each: bool, tell: Tell) -> tuple[Lines, list[Line], list[int]]:
    """The training text, the last lines for validation, and how many they are; of `each` corpus, or of all."""
    counts = Counter(line.corpus * each for line in counted(files.train(), "counting", tell))
    if min(counts.values()) < 2:
        which = "a corpus" if len(counts) > 1 else "data.source"
        raise ValueError(f"{which} has a single line, so none can be set aside: set data.valid_source")
    total = counts.total()
    held = {i: min(max(1, files.data.holdout * n // total), max(1, n // 10)) for i, n in counts.items()}

    def split(valid: bool) -> Iterator[Line]:
        seen = Counter[int]()
        for line in files.train():
            corpus = line.corpus * each
            seen[corpus] += 1
            if (seen[corpus] > counts[corpus] - held[corpus]) == valid:
                yield line

    return lambda: split(False), list(split(True)), list(held.values())
