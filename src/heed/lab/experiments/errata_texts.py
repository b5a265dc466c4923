"""The texts of the errata: where each number of the lecture notes is, what it is, and why it differs."""

from heed.lab.language import tr


def _worked() -> dict[str, tuple[str, str, str]]:
    """From the introduction to the Transformer paper: parts 000, 001 and 002."""
    return {
        "alpha": ("000", tr("data['alpha']"), ""),
        "delta": ("000", tr("data['delta']"), ""),
        "mlp": (
            "000",
            tr("words that the MLP sees at once"),
            tr(
                "An MLP works on one position at a time; it is attention that replaces recurrence. Stacking does not need a Transformer either: RNNs "
                "can be stacked too."
            ),
        ),
        "concat": ("001", tr("8 heads of 3, concatenated"), ""),
        "mixed": ("001", tr("after the matrix 24 × 4"), ""),
        "path": (
            "001",
            tr("convolution, k = 3: layers over 9 words"),
            tr(
                "log_k n is the path length through dilated convolutions. Without dilation each layer reaches only (k − 1)/2 words further, so the path "
                "is of order n/k."
            ),
        ),
        "line-mean": ("001", tr("y = 2x + 3: mean"), ""),
        "line-variance": (
            "001",
            tr("y = 2x + 3: variance"),
            tr("A factor of 2 multiplies the standard deviation by 2 and the variance by 4."),
        ),
        "mean": ("001", tr("layer norm: mean of 4, 2, 3, 5"), ""),
        "deviation": ("001", tr("layer norm: standard deviation"), tr("√1.25 = 1.118 was truncated, not rounded.")),
        "first": ("001", tr("(4 − 3.5) / 1.11"), tr("0.5 / 1.118 is 0.447; 0.65 does not follow.")),
        "second": (
            "001",
            tr("(2 − 3.5) / 1.11"),
            tr("−1.5 / 1.118 is −1.342; −0.45 is the value for the 3, not for the 2."),
        ),
        "scaled": ("001", tr("the same × 3 + 1"), tr("The arithmetic is right for 0.65; with 0.447 it is 2.342.")),
        "other-word": ("001", tr("0.7 × 3 + 1"), ""),
        "order": ("001", tr("I go home − Home go I, no positions"), ""),
        "toy": ("001", tr("3 + 1000, the first word"), ""),
        "rate": (
            "001",
            tr("first learning rate ÷ peak rate"),
            tr(
                "A Transformer starts with a low rate and warms up, because Adam has seen too few gradients for large steps. Only then does the rate "
                "fall, as the notes say. `heed lab schedule` measures this."
            ),
        ),
        "masking": ("001", tr("masked after the softmax − before it"), ""),
        "seq2seq": (
            "002",
            tr("encoder and decoder: how many kept"),
            tr(
                "000 says that the encoder-decoder is kept, 002 that seq2seq is removed entirely. Only the recurrence is removed; encoder and decoder "
                "remain."
            ),
        ),
        "shape-q": (
            "002",
            tr("columns of Q, K and V"),
            tr("Q, K, V and O are d × d. d × d_f is the shape of W_1, which the list leaves out."),
        ),
        "shape-o": (
            "002",
            tr("columns of O"),
            tr("With O as d × d_f the result would be n × d_f, which cannot be added to X."),
        ),
        "scores": (
            "002",
            tr("equation (6): variance of the scores"),
            tr(
                "The score of a head is a sum of d_h products, so dividing by √d_h keeps the variance at 1. √d, which is right for the single head of "
                "equation (1), divides it by the number of heads as well."
            ),
        ),
    }


def _session() -> dict[str, tuple[str, str, str]]:
    """The session of part 003."""
    return {
        "solid": (
            "003-1",
            tr("P(solid | ice) / P(solid | steam)"),
            tr("The ratio comes from unrounded probabilities; two digits of each allow 8.2 to 9.1."),
        ),
        "gas": ("003-1", tr("P(gas | ice) / P(gas | steam)"), ""),
        "water": ("003-1", tr("P(water | ice) / P(water | steam)"), ""),
        "fashion": (
            "003-1",
            tr("P(fashion | ice) / P(fashion | steam)"),
            tr("From unrounded probabilities again; two digits of each allow 0.89 to 1.00."),
        ),
        "chain-middle": (
            "003-1",
            tr("df/dt at t = 1.7, middle line"),
            tr("∂f/∂z is 2yz sin(x) e^(yz²); the z is missing in the middle line and back in the last."),
        ),
        "chain-last": ("003-1", tr("df/dt at t = 1.7, last line"), ""),
        "jacobian-entries": (
            "003-1",
            tr("entries of ∂h_j/∂h_(j−1), 4 units"),
            tr(
                "In the first matrix each entry is the derivative of the whole vector h_j: 4 × 4 × 4 numbers. It must be the derivative of a single "
                "number, h_(j,m), as in the second matrix."
            ),
        ),
        "jacobian-product": ("003-1", tr("(∏ Wᵀ diag f′)ᵀ − autograd"), ""),
        "jacobian-layout": (
            "003-1",
            tr("∏ Wᵀ diag f′ − autograd"),
            tr(
                "The notes mix two layouts. In their matrix, with a row for each element of h_j, the factor is diag f′ W; Wᵀ diag f′ is its transpose."
            ),
        ),
        "error-sum": (
            "003-1",
            tr("∂E_3/∂W_11, total ∂h_k/∂W"),
            tr(
                "In the sum, h_(k−1) is held fixed in ∂h_k/∂W. With the total derivative, earlier steps are counted several times."
            ),
        ),
        "error-parts": ("003-1", tr("∂E_3/∂W_11, h_(k−1) fixed"), ""),
        "rnn": ("003-1", tr("RNN written out − Heed's"), ""),
        "lstm": ("003-1", tr("LSTM written out − Heed's"), ""),
        "gru": ("003-1", tr("GRU written out − Heed's"), ""),
        "layer-norm": ("003-4", tr("α (m − μ)/σ + β − layer norm"), ""),
        "encoder-layers": ("003-3", tr("layers of the encoder"), ""),
        "decoder-layers": ("003-3", tr("layers of the decoder"), ""),
        "encoder-sublayers": ("003-3", tr("sub-layers of an encoder layer"), ""),
        "decoder-sublayers": ("003-3", tr("sub-layers of a decoder layer"), ""),
        "norm-spread": ("003-3", tr("norm of positions, largest − smallest"), ""),
        "rises": (
            "003-3",
            tr("distance grows up to offset, dim 10"),
            tr(
                "High frequencies repeat, so the distance oscillates after a few steps. It does so even in the notes' own table: X1 is further from X6 "
                "than from X7."
            ),
        ),
        "index": (
            "003-3",
            tr("largest i, dim 10"),
            tr("i counts pairs of columns, not dimensions: the columns are 2i and 2i + 1."),
        ),
        "distance": (
            "003-3",
            tr("distance between X1 and X2"),
            tr(
                "The table follows if column j is the sine or cosine of position · 10000^(−2j/100): each column has its own frequency."
            ),
        ),
        "greatest": (
            "003-3",
            tr("largest distance among ten positions"),
            tr("For the same reason: all ten frequencies of the table are high."),
        ),
        "cells": (
            "003-3",
            tr("cells that match equations (7), (8)"),
            tr("No cell off the diagonal matches the formula, and all hundred match the rule above."),
        ),
        "head-width": ("003-4", tr("512 / 8: width of a head"), ""),
        "heads": ("003-4", tr("512 / 64: heads"), ""),
        "hot-first": ("003-4", tr("softmax(100, 50, 50), first"), ""),
        "hot-second": ("003-4", tr("softmax(100, 50, 50), second"), ""),
        "mild-first": ("003-4", tr("softmax(10, 5, 5), first"), ""),
        "mild-second": ("003-4", tr("softmax(10, 5, 5), second"), ""),
        "residual-slope": (
            "003-4",
            tr("residual, f = x/2: ∂x_4/∂x_3"),
            tr(
                "Nothing in the sum over n depends on n, so with i = 3 it adds f three times. A layer adds it only once: x_(i+1) = x_i + f(x_i, w_i)."
            ),
        ),
        "residual-second": (
            "003-4",
            tr("residual, f = x/2, x_1 = 1: x_3"),
            tr("The second line adds f(x_i) again; the next layer adds f(x_(i+1), w_(i+1))."),
        ),
        "norm-parameters": (
            "003-4",
            tr("α and β of 5 tokens, d = 512"),
            tr(
                'There is one α and one β for each of the 512 features, and all tokens share them, as 001 says ("for each node").'
            ),
        ),
        "cross-keys": (
            "003-5",
            tr("cross attention: keys per query"),
            tr(
                'In self-attention the keys of "<s> tobigs, i love you so" would be its own 6 tokens. Here they are the 5 of the source, so it is cross '
                'attention, not "Encoder-Decoder Self-Attention".'
            ),
        ),
        "bert-share": ("003-6", tr("BERT: share of hidden tokens"), ""),
        "bert-masked": ("003-6", tr("BERT: of these, masked"), ""),
        "bert-random": ("003-6", tr("BERT: of these, another token"), ""),
        "bert-kept": ("003-6", tr("BERT: of these, kept"), ""),
        "bart-pegasus": (
            "003-6",
            tr("differences between Pegasus and BART"),
            tr("BART: post-norm, learned positions, GELU. Pegasus: pre-norm, sinusoids, ReLU."),
        ),
    }


def texts() -> dict[str, tuple[str, str, str]]:
    """For each number: its part of the notes, what it is, and why it differs (empty where it agrees)."""
    return {**_worked(), **_session()}


def slips() -> list[list[str]]:
    """Slips without a number: the part, what the notes say, and what it should be."""
    return [
        ["000", tr("X = W_V x_2 + b_V"), tr("V = W_V x_2 + b_V: the third matrix gives the values")],
        [
            "000",
            tr("Vaswani et al. in Sequence to Sequence Learning …"),
            tr("the Transformer's paper is Attention Is All You Need; the reference below the figure is right"),
        ],
        ["000", tr("s·h / √n, and n_1, n_2 for lengths"), tr("this n is the dimension of s and h, d_k further down")],
        ["000", tr("Loung attention"), tr("Luong")],
        [
            "001",
            tr("r: size of"),
            tr("r is the size of the neighbourhood in restricted attention; the line breaks off"),
        ],
        ["002", tr("X̃O in equation (3) with the tilde over both"), tr("X̃ O: the concatenated heads times O")],
        ["003-1", tr("D_h, then D_n, for the dimension of h"), tr("both are the same dimension")],
        ["003-1", tr("the sum over i in ∂E/∂W, over t further down"), tr("both count the steps")],
        ["003-4", tr("Position wide Feed Forward Network"), tr("position-wise: the same network at each position")],
    ]
