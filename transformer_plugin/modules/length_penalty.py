"""Length penalties of beam search: a hypothesis' score is log P(Y|X) / lp(Y)."""

from __future__ import annotations


def gnmt_length_penalty(length: float, alpha: float) -> float:
    """((5 + |Y|) / 6)^alpha, |Y| with end of sentence: Wu et al. 2016, equation (14);
    section 6.1 of the paper uses alpha = 0.6."""
    return ((5 + length) / 6) ** alpha


def fairseq_length_penalty(length: float, alpha: float) -> float:
    """|Y|^alpha, |Y| with end of sentence: fairseq's --lenpen."""
    return length**alpha


LENGTH_PENALTIES = {"gnmt": gnmt_length_penalty, "fairseq": fairseq_length_penalty}
