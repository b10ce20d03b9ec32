"""Very long lines are translated in parts; here each is its own translation."""

from types import SimpleNamespace

import pytest
import sentencepiece
import torch
from fairseq.data import Dictionary

from transformer_plugin.translation.alignment import word_links
from transformer_plugin.translation.subwords import SentencePieces
from transformer_plugin.translation.translator import Translator

ENGLISH = "the cat sees the dog . and the cat slowly sees it ! "
CHINESE = (
    "今天天气很好。我们去公园散步。他喜欢吃苹果！你叫什么名字？他说：“昨天下雨了。”这本书很有意思。"
)


@pytest.fixture
def copier(tmp_path):
    """copier(text, length) copies sentences, with subwords learnt from the text, in parts of that
    length."""

    def make(text, length):
        (tmp_path / "text").write_text(text, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(tmp_path / "text"), model_prefix=str(tmp_path / "joint"), minloglevel=2,
            vocab_size=len(set(text)) + 4, model_type="bpe", normalization_rule_name="identity",
        )  # fmt: skip
        subwords, words = SentencePieces(tmp_path / "joint.model"), Dictionary()
        for number in range(len(subwords.model)):
            words.add_symbol(subwords.model.id_to_piece(number))

        def copies(_generator, _models, sample, _prefix):
            for tokens in sample["net_input"]["src_tokens"]:
                tokens = tokens[tokens.ne(words.pad())]
                pairs = [(i, i) for i in range(len(tokens) - 1)]
                scores = {"score": 0.0, "positional_scores": torch.zeros(1)}
                yield [{"tokens": tokens, "alignment": pairs, **scores}]

        task = SimpleNamespace(
            source_dictionary=words, target_dictionary=words, inference_step=copies,
            cfg=SimpleNamespace(left_pad_source=True),
        )  # fmt: skip
        model = SimpleNamespace(
            max_positions=lambda: (99, 99), parameters=lambda: iter([torch.ones(1)])
        )
        return Translator(task, [model], None, subwords, subwords, part_length=length)

    return make


def test_words_that_are_cut_are_counted_once(copier):
    translator = copier(ENGLISH * 9, length=6)
    (found,) = translator.translate(["the catcatcatcatcatcat . dogdogdogdogdogdog sees"])
    assert len(found.parts) > 5
    links = word_links(found, translator.subwords, translator.target_subwords)
    assert {source for source, _ in links} == {0, 1, 2, 3, 4}
    assert {target for _, target in links} == set(range(len(found.text.split())))


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_they_are_sentences_in_a_language_without_spaces_too(copier, text):
    translator = copier(text * 9, length=40)
    (found,) = translator.translate([text * 5])
    assert found.text == (text * 5).strip()
    parts = [translator.subwords.join(part.source) for part in found.parts]
    assert len(parts) > 3 and all(part[-1] in ".!?。！？" for part in parts)
    assert not any(part.startswith("”") for part in parts)
    links = word_links(found, translator.subwords, translator.target_subwords)
    words = {(number, number) for number in range(len(found.text.split()))}
    assert set(links) == words


def test_a_part_and_its_end_have_room_in_the_model(copier):
    """Of 99 positions one is for the end of the sentence."""
    translator = copier(ENGLISH * 9, length=500)
    assert translator.part_length == 98
    (found,) = translator.translate(["cat " * 200])
    assert max(len(part.source_tokens) for part in found.parts) <= 99


def test_parts_fit_into_each_model_of_an_ensemble(copier):
    whole = copier(ENGLISH * 9, length=500)
    short = SimpleNamespace(max_positions=lambda: (20, 99))
    args = (whole.task, [*whole.models, short], None, whole.subwords, whole.subwords)
    assert Translator(*args).part_length == 19
