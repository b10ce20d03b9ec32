"""What a recipe shows of a training log while it grows."""

from io import StringIO

from transformer_plugin.runs.screen import BriefScreen

EPOCH = "2026-03-02 09:00:00 | INFO | train | epoch 001 | loss 5.12 | ppl 34.8 | num_updates 7"
WARNING = "2026-03-02 09:00:01 | WARNING | transformer_plugin.task | take care"
SKIPPED = "1 samples have invalid sizes and will be skipped, max_positions=(250, 250), first few"


def shown(text):
    stream = StringIO()
    screen = BriefScreen(stream)
    screen.write(text.encode())
    return stream.getvalue()


def test_an_epoch_and_a_warning_are_shown():
    assert shown(f"{EPOCH}\n{WARNING}\n") == "  epoch 1: train ppl 34.80\n  take care\n"


def test_a_line_that_another_cuts_off_is_no_epoch():
    """Two processes write to one log; it ended in an IndexError, which stopped training."""
    assert shown(f"{EPOCH[:-20]}{WARNING}\n") == "  take care\n"


def test_sentences_that_fairseq_leaves_out_are_shown_once():
    """Each process says so; fairseq-generate does without a date."""
    line = f"2026-03-02 09:00:00 | WARNING | fairseq.tasks.fairseq_task | {SKIPPED}\n"
    assert shown(2 * line) == shown(f"WARNING:fairseq.x:{SKIPPED}\n") == f"  {SKIPPED}\n"
