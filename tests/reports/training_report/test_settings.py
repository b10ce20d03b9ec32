"""Which settings a report shows."""

from transformer_plugin.reports.training_report.settings import parse_settings, shown_settings


def test_settings_that_are_shown():
    """The main ones and those that differ; no files, no switch that nobody uses."""
    one = {
        "task": {"data": "/a"},
        "checkpoint": {"save_dir": "x"},
        "optimization": {"max_epoch": 3},
        "common": {"seed": 1, "fp16": False},
        "model": {"_name": "tiny", "dropout": 0.0, "x": 1},
    }
    two = one | {"task": {"data": "/b", "beam": 4}, "common": {"seed": 2, "fp16": False}}
    both = [
        ("model", ["tiny"] * 2),
        ("model.dropout", [0.0] * 2),
        ("optimization.max_epoch", [3] * 2),
    ]
    differ = [("common.seed", [1, 2]), ("task.beam", [None, 4])]
    found = shown_settings([one, two])
    assert [tuple(setting) for setting in found] == [*both, *differ]
    assert [tuple(setting) for setting in found if setting.differs] == differ
    assert [setting.name for setting in shown_settings([one])] == [
        *(name for name, _ in both),
        "common.seed",
    ]


def test_a_model_without_a_dataclass_shows_its_own_settings_only():
    """fairseq's Transformer has the whole command line in the section of the model."""
    stock = parse_settings(
        "{'_name': None, 'common': {'log_interval': 10}, 'task': {'_name': 'translation'},"
        " 'model': Namespace(_name='transformer', arch='transformer', log_interval=10, dropout=0.3,"
        " task='translation', encoder_layers=2, activation_fn='relu', criterion='cross_entropy'),"
        " 'criterion': {'_name': 'cross_entropy'}}"
    )
    own = {"model": {"_name": "vaswani_tiny", "dropout": 0.1, "encoder_layers": 2}}
    found = {setting.name: setting.values for setting in shown_settings([own, stock])}
    assert found == {
        "model": ["vaswani_tiny", "transformer"],
        "model.encoder_layers": [2, 2],
        "model.dropout": [0.1, 0.3],
        "criterion": [None, "cross_entropy"],
        "model.activation_fn": [None, "relu"],
        "task": [None, "translation"],
    }
