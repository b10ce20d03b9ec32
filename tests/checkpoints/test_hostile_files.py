"""No checkpoint runs code, shows the environment or takes all memory: one line refuses each."""

import ast
import re
import shutil
import sys
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
import torch
from fairseq import checkpoint_utils

from transformer_plugin.checkpoint_error import CheckpointError
from transformer_plugin.checkpoints.evaluated_options import EVALUATED
from transformer_plugin.checkpoints.literals import literal
from transformer_plugin.checkpoints.safe_loading import load

sys.path.insert(0, str(Path(__file__).parent))
from fairseq_commands import generate, run
from hostile_changes import CANARY, CODE, in_header, put
from hostile_files import HOSTILE, write

MODELS = ("transformer", "fconv", "lstm", "plugin")


@pytest.fixture(scope="session")
def runs(made_once):
    """Checkpoints of real runs, and their data."""

    def train(folder):
        script = Path(__file__).parent / "stock_runs.py"
        run(sys.executable, script, folder, env={"PYTHONPATH": "."})

    return made_once("stock_runs", train)


@pytest.fixture(scope="session")
def bases(runs):
    return {name: torch.load(runs / f"{name}.pt", weights_only=False) for name in MODELS}


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A working directory in which nothing may appear, and a secret that nothing may show."""
    monkeypatch.setenv("SECRET", "a-secret-of-the-environment")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / CANARY).exists()


def check_refusal(message, path, named):
    (line,) = message.splitlines()
    assert str(path) in line and named in line, line
    assert "a-secret-of-the-environment" not in line
    assert len(line) < 600


def a_quarter(names):
    """All of them, of which `make test` takes one of each four: the first, then the second, ..."""
    return [
        pytest.param(name, marks=() if i % 4 == i // 4 % 4 else pytest.mark.slow)
        for i, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", a_quarter(HOSTILE))
def test_fairseq_refuses(name, bases, runs, watched):
    path = watched / "hostile.pt"
    named = write(name, bases, path)
    with pytest.raises(CheckpointError) as refusal:
        checkpoint_utils.load_model_ensemble_and_task([str(path)], {"data": str(runs / "data")})
    check_refusal(str(refusal.value), path, named)


def test_the_attack_works_where_nothing_is_checked(bases, watched, monkeypatch):
    """The canary sings: without the checks the same file runs its code."""
    from fairseq.models import fconv

    monkeypatch.setattr(fconv, "eval", eval)
    state = in_header(bases["fconv"], "args")
    put(state, "args", "model", encoder_layers=CODE)
    with pytest.raises((TypeError, AttributeError)):
        fconv.FConvModel.build_model(state["args"], Namespace(source_dictionary=None))
    (watched / CANARY).unlink()


@pytest.mark.parametrize("header", ["cfg", "args"])
@pytest.mark.parametrize("name", MODELS)
def test_real_checkpoints_load_and_generate(name, header, bases, runs, tmp_path):
    if name == "plugin" and header == "args":
        pytest.skip("the plugin has never written this header")
    torch.save(in_header(bases[name], header), tmp_path / "real.pt")
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(tmp_path / "real.pt")], {"data": str(runs / "data")}
    )
    for weight, stored in zip(
        model.state_dict().values(), bases[name]["model"].values(), strict=True
    ):
        assert torch.equal(weight, stored)
    task.load_dataset("test")
    batch = next(task.get_batch_iterator(task.dataset("test"), max_tokens=200).next_epoch_itr())
    options = Namespace(beam=2, max_len_a=0, max_len_b=5)
    hypotheses = task.build_generator([model], options).generate([model.eval()], batch)
    assert len(hypotheses) == 3 and all(len(found[0]["tokens"]) for found in hypotheses)


def evaluated_in_fairseq():
    """The names of the options that fairseq's source passes to eval, found by its syntax."""
    found = set()
    for path in Path(fairseq.__file__).parent.rglob("*.py"):
        if "examples" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            plain = name == "eval" and isinstance(node.func, ast.Name)
            if plain or name in ("literal_eval", "eval_bool", "eval_str_list", "eval_str_dict"):
                argument = node.args[0]
                if isinstance(argument, ast.Attribute):
                    found.add(argument.attr)
    return found


def test_every_option_that_fairseq_evaluates_is_known():
    found = evaluated_in_fairseq()
    assert {"encoder_layers", "adaptive_softmax_cutoff", "left_pad_source"} <= found
    assert found - EVALUATED.keys() <= {"optimizer_overrides"}  # an option of the command line


def test_eval_is_literal_in_all_of_fairseq():
    evaluating = 0
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq.") and getattr(module, "__file__", None):
            source = Path(module.__file__).read_bytes().decode("utf-8", "replace")
            if re.search(r"(?<![.\w])eval\(", source):
                evaluating += 1
                assert module.eval is literal, name
    assert evaluating > 10


@pytest.mark.parametrize(
    "text",
    [
        *("[(512, 3)] * 9 + [(1024, 3)] * 4 + [(2048, 1)] * 2", "[(256, 3)] * 4", "True", "1"),
        *("(0.9, 0.98)", "10000,50000,200000", "[3, 7, 15, 31]", "-1", "None", "{'a': [1]}"),
        "[(512, 10, 5)] + [(512, 3, 2)] * 4 + [(512,2,2)] + [(512,2,2)]",
    ],
)
def test_literals_are_what_python_makes_of_them(text):
    assert literal(text) == eval(text)


def test_load_takes_every_real_checkpoint_whole(runs):
    for name in MODELS:
        state = load(runs / f"{name}.pt")
        raw = torch.load(runs / f"{name}.pt", weights_only=False)
        assert state["cfg"] == raw["cfg"] and state["optimizer_history"] == raw["optimizer_history"]


def test_a_command_ends_in_one_line(bases, runs, watched):
    path = watched / "hostile.pt"
    write("cfg adaptive_softmax_cutoff", bases, path)
    done = generate(runs / "data", path, status=1)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    check_refusal(done.stderr.strip().splitlines()[-1], path, "adaptive_softmax_cutoff")


DATA, FOLDER = "{data}", "{folder}"
PLUGIN = ["--user-dir", "transformer_plugin", "--task", "vaswani_translation", "--cpu"]
TRAIN = [
    *("fairseq-train", DATA, *PLUGIN, "--arch", "vaswani_tiny", "--optimizer", "vaswani_adam"),
    *("--criterion", "vaswani_cross_entropy", "--max-update", "1", "--max-tokens", "100"),
    *("--disable-validation", "--save-dir", "{}.save", "--num-workers", "0"),
]
RAW = [DATA, "--path", "{}", "--cpu", "--subwords", FOLDER]
COMMANDS = {
    "generate": ["fairseq-generate", DATA, *PLUGIN, "--path", "{}"],
    "interactive": ["fairseq-interactive", DATA, *PLUGIN, "--path", "{}"],
    "validate": ["fairseq-validate", DATA, *PLUGIN, "--path", "{}", "--max-tokens", "100"],
    "restore-file": [*TRAIN, "--restore-file", "{}"],
    "finetune": [*TRAIN, "--finetune-from-model", "{}"],
    "translate": ["transformer-plugin", "translate", *RAW],
    "serve": ["transformer-plugin", "serve", *RAW, "--port", "0"],
    "attention": [
        *("transformer-plugin", "attention", "--data", *RAW),
        *("--text", "w1", "--output", "{}.html"),
    ],
    "contrast": ["transformer-plugin", "contrast", *RAW, "--input", f"{FOLDER}/pairs.tsv"],
    "report": ["transformer-plugin", "report", "{}.run"],
    "average": ["transformer-plugin", "average", "--inputs", "{}", "--output", "{}.average"],
    "convert": ["transformer-plugin", "convert", "{}", "{}.converted", "--to", "plugin"],
    "export": [
        *("transformer-plugin", "export", "{}", "{}.exported", "--data", DATA),
        *("--to", "ctranslate2"),
    ],
    "doctor": ["transformer-plugin", "doctor", "--data", DATA, "--path", "{}"],
}
# What these commands never look at is no reason for them to refuse a file.
BUILD_NOTHING = {"average", "doctor", "restore-file", "finetune", "convert", "export"}
OF_BUILDING = (
    *("positions", "width of", "lstm hidden", "fconv channels", "d_ff", "another shape"),
    *("plugin's weights", "unknown model", "unknown task", "unknown arch"),
)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_every_file(command, bases, runs, toy, tmp_path):
    (tmp_path / "joint.codes").write_text("#version: 0.2\nw 1</w>\n")
    (tmp_path / "pairs.tsv").write_text("source\tright\twrong\tcategory\nw1\tw1\tw2\tword\n")
    words = [
        word.format("{}", data=runs / "data", folder=tmp_path)
        if "{d" in word or "{f" in word
        else word
        for word in COMMANDS[command]
    ]
    named = {}
    for i, name in enumerate(HOSTILE):
        path = tmp_path / f"{i}.pt"
        named[path] = (name, write(name, bases, path))
        if command == "report":
            checkpoints = Path(f"{path}.run/checkpoints")
            checkpoints.mkdir(parents=True)
            path.rename(checkpoints / "checkpoint_last.pt")
            shutil.copy(toy / "train.log", checkpoints.parent)
    driver = Path(__file__).parent / "commands_in_forks.py"
    secret = {"PYTHONPATH": ".", "SECRET": "a-secret-of-the-environment"}
    paths = "\n".join(map(str, named))
    run(sys.executable, driver, *words, input=paths, env=secret, timeout=2500)
    wrong = []
    for path, (name, value) in named.items():
        text = Path(f"{path}.log").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if str(path) in line and value in line]
        built = command not in BUILD_NOTHING or not any(part in name for part in OF_BUILDING)
        refused = lines and text.splitlines()[-1] != "status 0"
        shown = "Traceback" in text or secret["SECRET"] in text
        if shown or (built and not refused and command != "report"):  # which shows what it can
            wrong.append((name, text[-500:]))
    assert not wrong, f"{len(wrong)}: {wrong[:3]}"
    assert not list(tmp_path.rglob(CANARY)) and not (Path.cwd() / CANARY).exists()
