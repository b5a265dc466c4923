"""A model that writes a summary of an article."""

from collections.abc import Sequence
from typing import Any

from heed.products.translator.results import Translation
from heed.products.translator.translator import Translator


class Summarizer(Translator):
    """It searches as a translator does; an article too long for the model is cut, not split."""

    noun = "a summarizer"
    verbs = ("summarize", *Translator.verbs)

    def summarize(self, articles: str | Sequence[str], *, too_long: str = "cut", **options: Any) -> Any:
        """Summaries of articles, in their order; `source` of each is what was read."""
        return self.translate(articles, too_long=too_long, **options)

    def unread(self, article: str, summary: Translation) -> int:
        """How many words at the end of an article were cut off."""
        return len(article.split()) - len(summary.source.split())
