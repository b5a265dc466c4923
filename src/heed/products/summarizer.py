"""A model that summarizes articles."""

from collections.abc import Sequence
from typing import Any

from heed.products.translator.results import Translation
from heed.products.translator.translator import Translator


class Summarizer(Translator):
    """It searches like a translator; an article too long for the model is truncated, not split."""

    noun = "a summarizer"
    verbs = ("summarize", *Translator.verbs)

    def summarize(self, articles: str | Sequence[str], *, too_long: str = "cut", **options: Any) -> Any:
        """Summaries of articles, in order; `source` of each is the text that was read."""
        return self.translate(articles, too_long=too_long, **options)

    def unread(self, article: str, summary: Translation) -> int:
        """How many words at the end of an article were truncated."""
        return len(article.split()) - len(summary.source.split())
