"""CTC: prefixes, the joint search and alignments beside enumeration."""

import itertools
import math

import numpy as np
import pytest
import torch

from heed.decoding.ctc import PrefixScores, align
from heed.decoding.speech import LanguageScores, SpeechDecoding, ctc_logp, search_speech
from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.vocabularies.vocabulary import SpecialTokens

STATES, TOKENS, END = 5, 3, 0
SPECIAL = SpecialTokens(pad=3, unknown=3, first=0, last=0)


def collapse(path):
    return tuple(token for token, _ in itertools.groupby(path) if token != TOKENS)


def texts_of(logp):
    """The log-probability of each text, by all paths."""
    found: dict[tuple, float] = {}
    for path in itertools.product(range(TOKENS + 1), repeat=len(logp)):
        total = sum(logp[i, token].item() for i, token in enumerate(path))
        text = collapse(path)
        found[text] = np.logaddexp(found.get(text, -math.inf), total)
    return found


@pytest.fixture(scope="module")
def logp():
    return torch.randn(2, STATES, TOKENS + 1, generator=torch.Generator().manual_seed(3)).double().log_softmax(dim=-1)


@pytest.mark.parametrize("prefix", [(), (1,), (1, 1), (2, 1), (1, 2, 1), (1, 1, 1), (0, 0, 0, 0)])
def test_prefixes_are_as_likely_as_all_texts_that_begin_so(logp, prefix):
    counts = torch.tensor([STATES, 4])
    scores = PrefixScores(logp, counts)
    for token in prefix:
        scores.append(torch.tensor([token, token]))
    for row, count in enumerate(counts.tolist()):
        texts = texts_of(logp[row, :count])

        def beginning(start, texts=texts):
            own = [p for text, p in texts.items() if text[: len(start)] == start]
            return np.logaddexp.reduce(own) if own else -math.inf

        before = beginning(prefix)
        found = scores.extensions(END)[row] + before
        for token in range(TOKENS):
            right = texts.get(prefix, -math.inf) if token == END else beginning((*prefix, token))
            if before > -math.inf:
                assert found[token].item() == pytest.approx(right, abs=1e-10)
            else:
                assert scores.extensions(END)[row, token] == -math.inf


def test_reordered_prefixes_are_those_of_their_rows(logp):
    scores = PrefixScores(logp, torch.tensor([STATES, 4]))
    scores.append(torch.tensor([1, 2]))
    one = scores.extensions(END)
    scores.reorder(torch.tensor([1, 1, 0]))
    torch.testing.assert_close(scores.extensions(END), one[[1, 1, 0]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("tokens", [[1], [1, 1], [0, 1, 2], [2, 2, 1]])
def test_an_alignment_is_the_likeliest_path(logp, tokens):
    own = logp[0].numpy()
    paths = [p for p in itertools.product(range(TOKENS + 1), repeat=STATES) if collapse(p) == tuple(tokens)]
    best = max(paths, key=lambda p: sum(own[i, t] for i, t in enumerate(p)))
    spans = align(own, tokens)
    path = [TOKENS] * STATES
    for token, span in zip(tokens, spans, strict=True):
        path[span.start : span.end] = [token] * (span.end - span.start)
        assert span.score == pytest.approx(own[span.start : span.end, token].mean())
    assert tuple(path) == best


def test_a_text_with_more_tokens_than_states_has_no_alignment(logp):
    assert align(logp[0].numpy(), [1, 1, 1]) is not None
    assert align(logp[0].numpy(), [1, 1, 1, 1]) is None
    assert align(logp[0].numpy(), []) == []


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = SpeechTransformerConfig(
        vocab_size=TOKENS, inputs=8, dim=8, heads=2, hidden=8, encoder_layers=1, decoder_layers=1, channels=2
    )
    made = SpeechTransformer(config).double().eval()
    for weight in made.parameters():
        weight.data.normal_(0, 0.4)
    return made


class Bigrams:
    """A language model of two tokens, with other numbers."""

    def __init__(self):
        self.table = torch.randn(5, 5, generator=torch.Generator().manual_seed(7)).double()

    def start(self, rows):
        return Nothing()

    def step(self, tokens, state):
        return self.table[tokens]


class Nothing:
    def reorder(self, rows):
        pass


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("fused", [False, True])
def test_the_joint_search_is_exhaustive_search(model, weight, fused):
    features = torch.randn(2, 19, 8, generator=torch.Generator().manual_seed(5)).double()
    memory, counts = model.encode_speech(features, torch.tensor([19, 15]))
    assert counts.tolist() == [4, 3]
    language = LanguageScores(Bigrams(), torch.tensor([4, 2, 1]), first=0) if fused else None
    config = SpeechDecoding(beam=200, nbest=3, ctc_weight=weight, lm_weight=0.5)
    found = search_speech(model, memory, counts, SPECIAL, config, language)
    ctc = ctc_logp(model, memory)
    for row, count in enumerate(counts.tolist()):
        by_ctc, scored = texts_of(ctc[row, :count]), {}
        for size in range(count + 1):
            for text in itertools.product(range(1, TOKENS), repeat=size):
                target = torch.tensor([[0, *text]])
                logits = model.project(model.decode(target, memory[row : row + 1, :count]))[0]
                attention = logits.log_softmax(-1)[range(size + 1), [*text, END]].sum().item()
                own = (1 - weight) * attention + (weight * by_ctc.get(text, -math.inf) if weight else 0.0)
                if fused:
                    ids = [language.ids[i].item() for i in (*text, END)]
                    own += 0.5 * sum(
                        language.model.table[one].float().log_softmax(-1)[other].item()
                        for one, other in itertools.pairwise([0, *ids])
                    )
                scored[text] = own
        right = sorted(scored.items(), key=lambda pair: -pair[1])[:3]
        assert [tuple(h.tokens[:-1]) for h in found[row]] == [text for text, _ in right]
        assert [h.score for h in found[row]] == pytest.approx([own for _, own in right], abs=1e-5 if fused else 1e-10)
