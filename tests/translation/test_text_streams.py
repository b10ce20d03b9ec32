"""Text from files and standard streams."""

from __future__ import annotations

import subprocess
import sys


def test_printing_ends_with_its_reader():
    code = (
        "import itertools; from transformer_plugin.translation.text_streams import print_texts;"
        " print_texts(itertools.repeat('é\\n'))"
    )
    pipe = f'{sys.executable} -c "{code}" | head -2'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], capture_output=True)
    assert done.returncode == 0 and done.stdout.decode() == "é\né\n" and not done.stderr
