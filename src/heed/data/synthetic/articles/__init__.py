"""Short local news with summaries, made up by Heed: something to learn summarising from, without any files.

An article tells who did what, where, when, how many were concerned, and why, one or two of these facts a sentence. Some
sentences say again what others have said, and some name people, places and numbers that do not matter. A summary has
all six facts, in other words than any sentence of the article.

The split: an article belongs to train, valid or test by a hash of who did what and where. So no such combination of the
test set is ever seen in training, however it is told.

Each file imports only those before it: words, town, deeds, efforts, telling, corpus.
"""

from heed.data.synthetic.articles.corpus import EDITION, Article, articles, write

__all__ = ["EDITION", "Article", "articles", "write"]
