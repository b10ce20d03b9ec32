"""With --only-trees each hypothesis is a tree of its sentence, and the likeliest tree is found."""

import contextlib
import itertools
import math

import pytest
import torch
from markov_chain import MarkovChain

from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.parsing.linear_trees import DEEPEST, NotATree, rebuilt
from transformer_plugin.search import tree_scorer
from transformer_plugin.search.beam_search import beam_search
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.sampling import Sampling
from transformer_plugin.search.scorers import FusedScorer, Scores
from transformer_plugin.search.tree_scorer import TreeScorer, TreeTokens

pytest.importorskip("nltk")
EOS, PAD, UNK = 2, 1, 3
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
SOURCE = [*SPECIAL, "▁a", "▁b", "c", "▁"]
TARGET = [*SPECIAL, "S", "/S", "NN", "NP", "/NP", "/", "NP*"]
WORDS = ("NN", "/", "NP*")  # parts of speech


def random_chain(seed, certain=1.0):
    torch.manual_seed(seed)
    return MarkovChain(torch.log_softmax(certain * torch.randn(len(TARGET), len(TARGET)), 1))


def tokens_of():
    return TreeTokens.of(SOURCE, TARGET, [1] * len(TARGET), len(SPECIAL), EOS)


def search(scorer, sentences, max_lengths, beam_size, **fields):
    rules = Rules(beam_size, lambda n: gnmt_length_penalty(n, 0.0), fields.pop("stop", "bound"),
                  EOS, PAD, UNK, **fields)  # fmt: skip
    width = max(map(len, sentences))
    source = torch.tensor([[*ids, *[PAD] * (width - len(ids))] for ids in sentences])
    longest = torch.tensor(max_lengths)
    return beam_search(TreeScorer(scorer, tokens_of(), source, longest), longest, rules)


def symbols(hypothesis):
    return [TARGET[i] for i in hypothesis.tokens.tolist()[:-1]]


SENTENCES = [[4, 6, 5, 2], [5, 2], [7, 6, 4, 4, 4, 5, 2]]  # sentences of 2, 1 and 5 words


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("beam_size", [1, 2, 6])
@pytest.mark.parametrize("more", [0, 1, 2, 9])
def test_every_hypothesis_is_a_tree(seed, beam_size, more):
    """Even if there is room for few tokens beside the parts of speech."""
    limits = [2 + more, 1 + more, 5 + more]
    found = search(random_chain(seed, 3.0), SENTENCES, limits, beam_size)
    for beam, words, limit in zip(found, ([*"ab"], ["b"], [*"aaaab"]), limits, strict=True):
        assert beam
        for each in beam:
            assert len(symbols(each)) <= limit and each.score.isfinite()
            assert rebuilt(symbols(each), words).leaves() == words


def test_draws_are_trees():
    draws = {"stop": "first-finished", "sampling": Sampling()}
    for beam in search(random_chain(0), SENTENCES, [12, 12, 12], 5, **draws):
        for each in beam:
            rebuilt(symbols(each), ["w"] * sum(token in WORDS for token in symbols(each)))


@pytest.mark.parametrize("seed", range(4))
def test_the_likeliest_tree_is_found_with_the_models_probability(seed):
    """Among all sequences of up to six tokens for two words."""
    chain = random_chain(seed)
    scores = {}
    for length in range(1, 7):
        for ids in itertools.product(range(len(SPECIAL), len(TARGET)), repeat=length):
            tokens = [TARGET[i] for i in ids]
            with contextlib.suppress(NotATree):
                rebuilt(tokens, ["a", "b"])
                if sum(token in WORDS for token in tokens) == 2:
                    path = itertools.pairwise([EOS, *ids, EOS])
                    scores[ids] = sum(float(chain.table[a, b]) for a, b in path)
    best = max(scores, key=scores.get)
    (beam,) = search(chain, [[4, 6, 5, 2]], [6], 400)
    assert tuple(beam[0].tokens.tolist()[:-1]) == best
    assert math.isclose(float(beam[0].score), scores[best], rel_tol=1e-5)
    assert {tuple(each.tokens.tolist()[:-1]) for each in beam} <= set(scores)


def test_a_translation_is_refused():
    with pytest.raises(ValueError, match="no tokens X and /X"):
        TreeTokens.of(SOURCE, [*SPECIAL, "Haus", "/", "und"], [1] * 7, len(SPECIAL), EOS)


def test_a_source_without_marks_of_words_is_refused():
    """As one of subword-nmt: each sentence would have no words, and so no tree."""
    with pytest.raises(ValueError, match="no source symbol begins with ▁"):
        TreeTokens.of([*SPECIAL, "a", "b@@"], TARGET, [1] * len(TARGET), len(SPECIAL), EOS)


def test_an_empty_sentence_has_a_tree_of_one_word():
    (beam,) = search(random_chain(0), [[EOS]], [5], 3)
    assert beam
    for each in beam:
        assert rebuilt(symbols(each), ["a"]).leaves() == ["a"]


def test_a_label_of_both_kinds_is_what_it_more_often_is():
    """VBDI has the counts of IcePaHC: 32,823 parts of speech and 66 constituents."""
    target = [*SPECIAL, "NP", "/NP", "VBDI", "/VBDI", "N"]
    tokens = TreeTokens.of(SOURCE, target, [1, 1, 1, 1, 10, 9, 32889, 66, 5], len(SPECIAL), EOS)
    assert [target[i] for i in tokens.closing[4:]] == ["/NP", *["<s>"] * 4]
    assert [target[i] for i in tokens.is_word.nonzero()] == ["VBDI", "N"]
    assert [target[i] for i in tokens.is_closing.nonzero()] == ["/NP", "/VBDI"]


def test_a_filler_of_the_dictionary_is_no_part_of_speech():
    target = [*TARGET, "madeupword0000"]
    tokens = TreeTokens.of(SOURCE, target, [1] * len(TARGET) + [0], len(SPECIAL), EOS)
    assert [target[i] for i in tokens.is_word.nonzero()] == list(WORDS)


def test_trees_of_the_search_are_not_too_deep_to_be_scored():
    assert tree_scorer._DEEPEST <= DEEPEST


def test_no_more_constituents_are_open_than_can_be_scored():
    chain = random_chain(0)
    chain.table[:, TARGET.index("S")] += 50  # it would open one after the other
    ((found,),) = search(chain, [[5, 2]], [600], 1)
    assert symbols(found).count("S") == tree_scorer._DEEPEST
    assert rebuilt(symbols(found), ["b"]).leaves() == ["b"]


class Constant:
    """A language model that likes all tokens equally."""

    def step(self, tokens):
        return torch.full((tokens.numel(), len(TARGET)), -1.0)

    def reorder(self, parents):
        pass

    def select(self, sentences):
        pass


def test_the_scores_of_a_language_model_count():
    chain = random_chain(0)
    (beam,) = search(FusedScorer(chain, Constant(), 0.5), [[4, 6, 5, 2]], [9], 3)
    assert beam
    for each in beam:
        path = itertools.pairwise([EOS, *each.tokens.tolist()])
        expected = sum(float(chain.table[a, b]) - 0.5 for a, b in path)
        assert math.isclose(float(each.score), expected, rel_tol=1e-5)


class TwoBack:
    """Scores that depend on the token two before, which it remembers; a chunk for each row."""

    def __init__(self, table, batch_size):
        self.table, self.past = table, torch.full((batch_size, 1), EOS)

    def step(self, tokens):
        self.present = tokens
        for row, past in enumerate(self.past.flatten()):
            yield Scores(slice(row, row + 1), self.table[past : past + 1].clone())

    def reorder(self, parents):
        self.past = self.present.gather(1, parents)

    def select(self, sentences):
        self.past = self.past[sentences]


def test_each_hypothesis_has_the_scores_of_its_own_past():
    """Where hypotheses change places, and sentences leave at different times."""
    table = random_chain(0).table
    for beam in search(TwoBack(table, 3), SENTENCES, [12, 3, 20], 4):
        assert beam
        for each in beam:
            ids = [EOS, EOS, *each.tokens.tolist()]
            expected = sum(float(table[a, c]) for a, c in zip(ids, ids[2:], strict=False))
            assert math.isclose(float(each.score), expected, rel_tol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_tree_may_be_as_long_as_the_limit(depth):
    chain = random_chain(0)
    chain.table[:, TARGET.index("S")] += 50
    ((found,),) = search(chain, [[5, 2]], [2 * depth + 1], 1)
    assert symbols(found).count("S") == symbols(found).count("/S") == depth


def test_a_sentence_of_more_words_than_the_limit_ends_too():
    """As no tree, which is better than no output at all."""
    (beam,) = search(random_chain(0), [[4, 6, 5, 2]], [1], 2)
    assert beam and all(each.score.isfinite() and len(symbols(each)) == 1 for each in beam)
