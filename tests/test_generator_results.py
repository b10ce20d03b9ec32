"""What a search returns besides the translations of an ordinary batch, and what it leaves alone."""

import functools

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.modules.length_penalty import fairseq_length_penalty
from transformer_plugin.modules.multi_head_attention import MultiHeadAttention
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search.tree_scorer import TreeTokens
from transformer_plugin.search_extras import Extras

EOS, PAD, UNK = 2, 1, 3
SOURCES = [9, 3, 6]


def rules(beam_size, **fields):
    lp = functools.partial(fairseq_length_penalty, alpha=1.0)
    return Rules(beam_size, lp, "first-finished", EOS, PAD, UNK, **fields)


def assert_same(ours, stock):
    for mine, theirs in zip(ours, stock, strict=True):
        assert [h["tokens"].tolist() for h in mine] == [h["tokens"].tolist() for h in theirs]
        for a, b in zip(mine, theirs, strict=True):
            torch.testing.assert_close(a["score"], b["score"], atol=1e-4, rtol=1e-4)


def test_the_first_input_may_be_the_symbol_0(build, batch, dictionary):
    """fairseq's begin of sentence, as its tasks of several languages give it."""
    model, sample = build(seed=3).eval(), batch(SOURCES, SOURCES)
    stock = SequenceGenerator([model], dictionary, beam_size=3, max_len_b=9)
    ours = VaswaniGenerator([model], rules(3), 0, 9).generate([], sample, bos_token=0)
    assert_same(ours, stock.generate([model], sample, bos_token=dictionary.bos()))


def test_the_temperature_divides_the_logits_of_each_model(build, batch, dictionary):
    models, sample = [build(seed=seed).eval() for seed in (3, 4)], batch(SOURCES, SOURCES)
    stock = SequenceGenerator(models, dictionary, beam_size=3, max_len_b=9, temperature=0.2)
    ours = VaswaniGenerator(models, rules(3), 0, 9, temperature=0.2)
    assert_same(ours.generate([], sample), stock.generate(models, sample))


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_sentences_with_fewer_hypotheses_are_aligned_with_others(build, batch, kind):
    """The prefix of one is its whole translation; the others have as many as the beam."""
    model, sample = build(seed=3).eval(), batch(SOURCES, SOURCES)
    prefix = torch.tensor([[7, 8], [7, EOS], [7, 9]])
    extras = Extras(kind, num_aligned=3)
    generator = VaswaniGenerator([model], rules(3), 0, 9, extras=extras)
    found = generator.generate([], sample, prefix_tokens=prefix)
    assert [len(beam) for beam in found] == [3, 1, 3]
    source = sample["net_input"]["src_tokens"]
    for i, beam in enumerate(found):
        row = {"net_input": {"src_tokens": source[i : i + 1]}}
        (alone,) = generator.generate([], row, prefix_tokens=prefix[i : i + 1])
        for each, other in zip(beam, alone, strict=True):
            torch.testing.assert_close(each["attention"], other["attention"])
            assert len(each["alignment"]) == len(other["alignment"]) > 0


def test_hypotheses_of_a_frozen_model_may_be_changed(build, batch):
    """As tensors of inference mode, they could not be changed outside of it."""
    generator = VaswaniGenerator([build(seed=3).requires_grad_(False)], rules(2), 0, 9)
    for beam in generator.generate([], batch(SOURCES, SOURCES)):
        for each in beam:
            for name in ("tokens", "score", "positional_scores"):
                assert (each[name].fill_(7) == 7).all()


class Remembering(MultiHeadAttention):
    """Keeps a tensor from its first call, as a table of rotary positions is kept."""

    def attend(self, q, k, v, *rest, **options):
        if not hasattr(self, "scale"):
            self.scale = q.new_ones(q.size(-1))
        return super().attend(q * self.scale, k, v, *rest, **options)


def test_training_goes_on_after_a_search_where_some_weights_are_frozen(build, batch):
    """A tensor of inference mode, kept by a user's module, could not be used in training."""
    model, sample = build(), batch(SOURCES, SOURCES)
    model.encoder.layers[0].requires_grad_(False)
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.self_attention.__class__ = Remembering
    VaswaniGenerator([model], rules(2), 0, 9).generate([], sample)
    model.train()(**sample["net_input"])[0].sum().backward()
    assert model.encoder.layers[1].self_attention.output.weight.grad is not None


def test_constraints_are_not_ignored(build, batch):
    with pytest.raises(ValueError, match="constraints need fairseq's own search"):
        VaswaniGenerator([build()], rules(2)).generate(
            [], batch([4], [4]), constraints=torch.tensor([[1, 1, 7, 0]])
        )


def test_a_prefix_that_allows_no_tree_has_no_hypothesis(build, batch):
    """It has more parts of speech than the sentence has words; the other sentence has trees."""
    numbers = torch.arange(64)
    closing = torch.where(numbers.eq(4), 5, 0)  # 4 opens what 5 closes
    tokens = TreeTokens(numbers.gt(3), closing, numbers.eq(5), numbers.gt(5), EOS)
    generator = VaswaniGenerator([build().eval()], rules(2), extras=Extras(tree_tokens=tokens))
    prefix = torch.tensor([[7, 7, 7, 7], [4, 7, PAD, PAD]])
    none, some = generator.generate([], batch([3, 3], [3, 3]), prefix_tokens=prefix)
    assert none == [] and some and all(each["score"].isfinite() for each in some)
