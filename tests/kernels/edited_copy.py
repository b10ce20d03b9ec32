"""Runs copies of the package in which one equation is edited: python edited_copy.py < EDITS.

An edit is a list: the copy's folder, and whether kernels are on. Forks of one process, which has
imported torch and fairseq, run them; each prints its numbers as a line of JSON.
"""

import functools
import io
import json
import logging
import os
import sys
from types import SimpleNamespace

import torch
import torch.fx.experimental.symbolic_shapes  # fairseq's attention imports it
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel  # noqa: F401  a copy shall not wait for it
from fairseq.models.transformer import TransformerModel  # noqa: F401
from fairseq.tasks.translation import TranslationTask  # noqa: F401


class MarkovChain:
    """A scorer whose sentences end early; what follows a token depends on it alone."""

    def __init__(self, size):
        self.table = 2 * torch.randn(size, size, generator=torch.Generator().manual_seed(2))
        self.table[:, 2] += 2  # end of sentence

    def step(self, tokens):
        yield slice(0, tokens.numel()), self.table[tokens.flatten()].clone(), None

    def reorder(self, parents):
        pass

    def select(self, sentences):
        pass


def numbers_of(folder, with_kernels):
    """The first loss of training, its gradient, and a search, of the package in ``folder``."""
    sys.path.insert(0, folder)
    os.environ["TRANSFORMER_PLUGIN_KERNELS"] = str(int(with_kernels))
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.WARNING, format="%(message)s", force=True)
    import transformer_plugin
    from transformer_plugin.checkpoints.exchange.equations_check import check_equations
    from transformer_plugin.checkpoints.stock_settings import UnsupportedModel
    from transformer_plugin.config import VaswaniConfig
    from transformer_plugin.criterion import VaswaniCrossEntropy
    from transformer_plugin.generator import VaswaniGenerator
    from transformer_plugin.model import VaswaniTransformer
    from transformer_plugin.modules.length_penalty import gnmt_length_penalty
    from transformer_plugin.search.beam_search import beam_search
    from transformer_plugin.search.next_tokens import Rules

    assert transformer_plugin.__file__.startswith(folder)
    words = Dictionary()
    for i in range(60):
        words.add_symbol(f"w{i}")
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words, state_dict=dict)
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 4}
    sizes |= {"max_source_positions": 64, "max_target_positions": 64}
    torch.manual_seed(2)
    model = VaswaniTransformer.build_model(VaswaniConfig(**sizes, dropout=0.0), task)
    with torch.no_grad():  # random models are nearly uniform
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        model.decoder.output_projection.weight.mul_(3)
    source = torch.randint(words.nspecial, len(words), (5, 9))
    source[:, -1] = words.eos()
    source[1, 5:], source[1, 4] = words.pad(), words.eos()
    sample = {
        "id": torch.arange(5),
        "ntokens": int(source.ne(words.pad()).sum()),
        "net_input": {
            "src_tokens": source,
            "src_lengths": source.ne(words.pad()).sum(1),
            "prev_output_tokens": source.roll(1, 1),
        },
        "target": source,
    }
    sample["net_input"]["prev_output_tokens"][1, [0, 5]] = torch.tensor([words.eos(), words.pad()])
    loss, _size, _log = VaswaniCrossEntropy(task, 0.1, False)(model.train(), sample)
    loss.backward()
    model.requires_grad_(False)  # or its weights would not be packed
    penalty = functools.partial(gnmt_length_penalty, alpha=0.6)
    rules = Rules(4, penalty, "bound", words.eos(), words.pad(), words.unk())
    found = VaswaniGenerator([model], rules).generate([model], sample)
    chain = beam_search(MarkovChain(len(words)), torch.full((5,), 12), rules)
    try:
        check_equations({"_name": "vaswani_base"})
        refusal = None
    except UnsupportedModel as error:
        refusal = str(error)
    return {
        "refusal": refusal,
        "loss": loss.item(),
        "gradient": sum(p.grad.double().square().sum().item() for p in model.parameters()) ** 0.5,
        "scores": [h["score"].item() for sentence in found for h in sentence]
        + [h.score.item() for sentence in chain for h in sentence],
        "tokens": [h["tokens"].tolist() for sentence in found for h in sentence],
        "log": log.getvalue(),
    }


def main():
    torch.set_num_threads(1)
    for folder, with_kernels in json.load(sys.stdin):
        if os.fork() == 0:
            print(json.dumps(numbers_of(folder, with_kernels)), flush=True)
            os._exit(0)
        assert os.wait()[1] == 0, folder


if __name__ == "__main__":
    main()
