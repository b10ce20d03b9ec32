"""Edits of the equations that the check must find, and what it leaves alone."""

import pytest
import torch

from transformer_plugin.checkpoints.exchange import equations_check
from transformer_plugin.checkpoints.meta_models import plugin_model
from transformer_plugin.checkpoints.stock_settings import UnsupportedModel


@pytest.fixture
def check(monkeypatch):
    """check(edit) checks the plugin's model after ``edit(model)``."""

    def check_edited(edit):
        def edited(*arguments, **options):
            model = plugin_model(*arguments, **options)
            edit(model)
            return model

        monkeypatch.setattr(equations_check, "plugin_model", edited)
        equations_check.check_equations({"_name": "vaswani_base"})

    return check_edited


def test_an_edit_that_shows_in_trained_biases_alone_is_found(check):
    """At the start of training all of them are 0."""

    def unbiased(model):
        outer = model.decoder.layers[0].feed_forward.outer
        outer.register_forward_hook(lambda layer, _inputs, y: y - layer.bias)

    with pytest.raises(UnsupportedModel, match="have been edited"):
        check(unbiased)


def test_an_edit_of_the_layers_after_the_first_is_found(check):
    def narrow(model):
        for layer in (*model.encoder.layers[1:], *model.decoder.layers[1:]):
            layer.self_attention.window = 12

    with pytest.raises(UnsupportedModel, match="have been edited"):
        check(narrow)


def test_the_largest_difference_is_in_the_message(check):
    def shift(_model, _inputs, found):
        found[0][0, 0, 0] += 3

    with pytest.raises(UnsupportedModel, match=r"differ from stock fairseq's by 3\. Other"):
        check(lambda model: model.register_forward_hook(shift))


def test_the_check_draws_no_random_numbers_of_the_program():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    equations_check.check_equations({"_name": "vaswani_base"})
    assert torch.get_rng_state().equal(before)
