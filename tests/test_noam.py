"""The schedule against equation (3)."""

import pytest
import torch
from omegaconf import OmegaConf

from transformer_plugin.adam import VaswaniAdam, VaswaniAdamConfig
from transformer_plugin.noam import NoamConfig, NoamSchedule


def schedule(**fields) -> NoamSchedule:
    adam = VaswaniAdamConfig(lr=[1.0])
    optimizer = VaswaniAdam(adam, [torch.nn.Parameter(torch.zeros(1))])
    numbers = {"warmup_updates": 4000, "lr": [1.0], "d_model": 512, "noam_d_model": None}
    return NoamSchedule(OmegaConf.create(numbers | fields), optimizer)


def test_equation_3():
    noam = schedule()
    for done, expected in ((0, 512**-0.5 * 4000**-1.5), (3999, (512 * 4000) ** -0.5)):
        assert noam.step_update(done) == pytest.approx(expected, rel=1e-12)
        assert noam.optimizer.get_lr() == noam.lr
    assert noam.step_update(15999) == pytest.approx(noam.step_update(3999) / 2)
    assert noam.step_update(1999) == pytest.approx(noam.step_update(3999) / 2)


@pytest.mark.parametrize("d_model, peak", [(512, 6.988e-4), (1024, 4.941e-4)])
def test_peak_rates_of_base_and_big(d_model, peak):
    noam = schedule(d_model=d_model)
    assert max(noam.step_update(n) for n in range(3900, 4100)) == pytest.approx(peak, rel=1e-4)


def test_lr_is_a_factor():
    assert schedule(lr=[2.0]).lr == 2 * schedule().lr


def test_another_width_may_be_given():
    rates = [schedule(**width).step_update(9) for width in ({"d_model": 64}, {"noam_d_model": 64})]
    assert rates[0] == rates[1] != schedule().step_update(9)


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="one --lr"):
        schedule(lr=[1.0, 2.0])
    with pytest.raises(ValueError, match="--warmup-updates"):
        schedule(warmup_updates=0)


@pytest.mark.parametrize("factor", [-1.0, float("nan")])
def test_a_factor_below_0_is_refused(factor):
    """With one below 0 the loss would rise, and the run would end as if nothing were wrong."""
    with pytest.raises(ValueError, match=f"--lr must be at least 0, got {factor}"):
        schedule(lr=[factor])


def test_default_warmup_is_the_papers():
    assert NoamConfig().warmup_updates == 4000
