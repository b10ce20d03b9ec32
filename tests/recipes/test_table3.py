"""The experiment table3: each row trains its own architecture with its own numbers."""

import subprocess

from recipe_environment import REPO, environment

from transformer_plugin.paper_tables import BASE_RUN, RUNS, TABLE_3


def settings(row):
    """What recipes/train.sh would read for a row."""
    script = (
        f'. {REPO}/recipes/lib.sh; load_experiment table3; printf "%s\\n" "$ARCH" '
        '"${DROPOUT:=}" "${LABEL_SMOOTHING:=}" "$MAX_UPDATE" "$SAVE_UPDATES" '
        '"$AVERAGE" "$EVALUATE" "$RUN_DIR" "$DATA_DIR"'
    )
    return subprocess.run(
        ["bash", "-c", script],
        env=environment(ROW=row, RUNS="/runs"),
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_row_is_that_of_the_paper():
    for row in TABLE_3:
        done = settings(row.row)
        assert done.returncode == 0, done.stderr
        arch, dropout, smoothing, updates, save, average, evaluate, run, data = (
            done.stdout.splitlines()
        )
        paper = RUNS.get(row.architecture, BASE_RUN)
        assert arch == row.architecture
        assert dropout == smoothing == "", "the architecture's"
        assert int(updates) == paper.updates
        assert paper.updates % int(save) == 0 and average == "1", "the end, not averaged"
        assert (evaluate, run, data) == ("valid", f"/runs/table3/{row.row}", "/runs/table3")


def test_an_unknown_row_lists_the_known_ones():
    done = settings("F")
    assert done.returncode == 2 and "ROW is 'F': expected base, A1 to A4" in done.stderr
