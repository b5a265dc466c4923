import pytest
import torch

from heed.decoding.beam import beam_search
from heed.decoding.ensemble import Ensemble
from heed.decoding.sample import stepwise_search


def found_by(model, texts, search=beam_search):
    found = search(model, model.start(*texts), torch.tensor([9, 7, 8]), first=0, last=4)
    return [hypotheses[0] for hypotheses in found]


@pytest.mark.parametrize("search", [beam_search, stepwise_search])
def test_a_model_beside_itself_is_itself(model, texts, search):
    for one, two in zip(found_by(model, texts, search), found_by(Ensemble([model] * 2), texts, search), strict=True):
        assert one.tokens == two.tokens
        assert one.scores == pytest.approx(two.scores, abs=1e-10)


def test_two_models_say_the_mean_of_their_probabilities(model, other, texts):
    both = Ensemble([model, other])
    state, target = both.start(*texts), torch.tensor([[0, 2, 1], [0, 1, 3], [0, 0, 2]])
    steps = torch.stack([both.step(target[:, t], state) for t in range(3)], dim=1)
    mean = sum(m(texts[0], target, texts[1]).softmax(-1) for m in (model, other)) / 2
    torch.testing.assert_close(steps.exp(), mean, rtol=0, atol=1e-10)


def test_the_score_of_an_ensemble_is_that_of_the_mean(model, other, texts):
    answers = found_by(Ensemble([model, other]), texts)
    assert [h.tokens for h in answers] != [h.tokens for h in found_by(model, texts)]
    for row, (tokens, _, scores) in enumerate(answers):
        source, valid = (part[row : row + 1] for part in texts)
        inputs = torch.tensor([[0, *tokens[:-1]]])
        mean = sum(m(source, inputs, valid).softmax(-1)[0] for m in (model, other)) / 2
        assert scores == pytest.approx(mean.log()[range(len(tokens)), tokens].tolist(), abs=1e-10)
