"""The plugin, with its safe trainer for tasks of fairseq too."""

import transformer_plugin  # noqa: F401
from transformer_plugin.training.protection import protect_training

protect_training()
