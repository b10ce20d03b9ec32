"""Recipes called for what they say, and the commands that a dry run prints."""

import itertools
import re
import shlex
import subprocess

from recipe_environment import REPO, environment


def recipe(*command, status=0, **knobs):
    done = subprocess.run(
        [str(REPO / "recipes" / command[0]), *command[1:]],
        env=environment(**{"RUNS": "/nowhere"} | knobs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def commands(text):
    """Each printed command as its words; what follows a redirection or a pipe left out."""
    for line in text.splitlines():
        words = shlex.split(line)
        ends = [i for i, word in enumerate(words) if word in {">", "|", "2>&1"}]
        yield words[: ends[0]] if ends else words


def without_variables(words):
    """A printed command without the variables that are set for it."""
    return list(itertools.dropwhile(re.compile("[A-Z_]+=").match, words))
