"""How far a language model lets a search go."""

import functools
import sys

import pytest
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig
from omegaconf import OmegaConf

from transformer_plugin.generator import VaswaniGenerator
from transformer_plugin.language_model import max_positions
from transformer_plugin.modules.length_penalty import gnmt_length_penalty
from transformer_plugin.refusal import Refusal
from transformer_plugin.search.next_tokens import Rules
from transformer_plugin.search_extras import Extras


class Task:
    def __init__(self, dictionary):
        self.source_dictionary = self.target_dictionary = dictionary


@pytest.fixture
def language_model(dictionary):
    """Builds one of fairseq's with 12 positions: learned ones, or sinusoids."""

    def build(learned):
        cfg = OmegaConf.structured(TransformerLanguageModelConfig)
        sizes = {"decoder_layers": 1, "decoder_embed_dim": 16, "decoder_input_dim": 16}
        sizes |= {"decoder_ffn_embed_dim": 16, "decoder_output_dim": 16}
        cfg = OmegaConf.create(
            OmegaConf.to_container(cfg, resolve=False) | sizes
            | {"decoder_attention_heads": 2, "decoder_learned_pos": learned}
            | {"tokens_per_sample": 12, "max_target_positions": 12, "tpu": False}
        )  # fmt: skip
        return TransformerLanguageModel.build_model(cfg, Task(dictionary)).eval()

    return build


@pytest.mark.parametrize("learned", [True, False])
def test_learned_positions_end(build, batch, dictionary, language_model, learned):
    fused = language_model(learned)
    assert max_positions(fused) == (12 if learned else sys.maxsize)
    penalty = functools.partial(gnmt_length_penalty, alpha=0.6)
    ids = dictionary.eos(), dictionary.pad(), dictionary.unk()
    model, extras = build(seed=1).eval(), Extras(language_model=fused, lm_weight=0.1)

    def longest(least):
        rules = Rules(2, penalty, "bound", *ids, min_length=least)
        generator = VaswaniGenerator([model], rules, -1.0, 200, 1.0, 50, extras)
        found = generator.generate([model], batch([5, 3], [5, 3]))
        return max(len(each["tokens"]) for beam in found for each in beam)

    assert longest(10) <= 12 or not learned
    if learned:
        with pytest.raises(Refusal, match="--min-len 25 is above the longest length, 11"):
            longest(25)
    else:
        assert longest(25) > 25
