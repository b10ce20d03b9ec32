"""What a program gives ``build_generator`` besides options reaches fairseq's search."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator

from transformer_plugin.refusal import Refusal
from transformer_plugin.task import VaswaniTranslationTask
from transformer_plugin.task_config import VaswaniTranslationConfig

EOS, SOURCES = 2, [5, 3]


@pytest.fixture
def task(dictionary):
    return VaswaniTranslationTask(VaswaniTranslationConfig(), dictionary, dictionary)


@pytest.mark.parametrize("among_options", [False, True])
def test_only_allowed_tokens_follow(task, build, batch, among_options):
    """Of each half of the dictionary one after the other, and the end after four."""
    model, sample = build().eval(), batch(SOURCES, SOURCES)
    halves = range(4, 30), range(30, 60)

    def allowed(_sentence, tokens):
        return [*halves[len(tokens) % 2]] if len(tokens) < 5 else [EOS]

    given = {"prefix_allowed_tokens_fn": allowed}
    if among_options:
        generator = task.build_generator([model], Namespace(**given))
    else:
        generator = task.build_generator([model], Namespace(), **given)
    for beam in task.inference_step(generator, [model], sample):
        for each in beam:
            *tokens, last = each["tokens"].tolist()
            assert [token >= 30 for token in tokens] == [True, False, True, False]
            assert last == EOS


@pytest.mark.parametrize("more", [{}, {"extra_gen_cls_kwargs": {"colour": "blue"}}], ids=str)
def test_a_programs_own_generator_is_built(task, build, more):
    class Own(SequenceGenerator):
        def __init__(self, *args, colour=None, **options):
            super().__init__(*args, **options)
            self.colour, self.longest = colour, (self.max_len_a, self.max_len_b)

    options = Namespace(beam=3, temperature=0.5)
    found = task.build_generator([build()], options, seq_gen_cls=Own, **more)
    assert type(found) is Own and found.colour == ("blue" if more else None)
    assert (found.beam_size, found.temperature) == (3, 0.5)
    assert found.longest == (1, 50)  # the paper's limit


def test_models_of_both_kinds_are_searched_together(task, build, build_stock, batch, dictionary):
    models, sample = [build().eval(), build_stock().eval()], batch(SOURCES, SOURCES)
    generator = task.build_generator(models, Namespace(beam=2, lenpen=1.0, max_len_b=9))
    stock = SequenceGenerator(models, dictionary, beam_size=2, max_len_b=9)
    for mine, theirs in zip(
        generator.generate(models, sample), stock.generate(models, sample), strict=True
    ):
        for a, b in zip(mine, theirs, strict=True):
            assert a["tokens"].equal(b["tokens"])
            torch.testing.assert_close(a["score"], b["score"])


def test_a_language_model_of_other_words_is_refused(task, build, dictionary):
    other = Dictionary()
    for number in reversed(range(len(dictionary) - dictionary.nspecial)):
        other.add_symbol(f"w{number}")  # as many words, with other ids
    language_model = SimpleNamespace(decoder=SimpleNamespace(dictionary=other))
    given = {"lm_model": language_model, "lm_weight": 0.3}
    with pytest.raises(Refusal, match="words have other ids than the target language's"):
        task.build_generator([build()], Namespace(), extra_gen_cls_kwargs=given)


@pytest.mark.parametrize("weight, rule", [(-0.3, "first-finished"), (0.3, "bound")])
def test_a_programs_language_model_counts_as_one(task, build, dictionary, caplog, weight, rule):
    """With a negative weight scores may rise, so that the bound does not hold."""
    language_model = SimpleNamespace(decoder=SimpleNamespace(dictionary=dictionary))
    given = {"lm_model": language_model, "lm_weight": weight}
    with caplog.at_level("INFO"):
        generator = task.build_generator([build()], Namespace(), extra_gen_cls_kwargs=given)
    assert generator.rules.stop_rule == rule and generator.extras.lm_weight == weight
    assert "lm_path a program's model (paper: None)" in caplog.text
