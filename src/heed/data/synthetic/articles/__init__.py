"""A synthetic corpus of short local news with summaries: training data for summarization without any files.

An article tells who did what, where, when, how many were concerned, and why, one or two of these facts per sentence. Some
sentences repeat facts, and others are distractors with people, places and numbers that do not matter. A summary has all six
facts, in other words than any sentence of the article.

The split: an article belongs to train, valid or test by a hash of who did what and where. So no such combination of the
test set is ever seen in training, however it is worded.

Each file imports only those before it: story, town_stories, people_stories, effort_stories, realization, corpus.
"""

from heed.data.synthetic.articles.corpus import EDITION, Article, articles, write

__all__ = ["EDITION", "Article", "articles", "write"]
