"""The programs of examples/: three training steps give what PyTorch gave (record.py), and each runs as a command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenon

sys.path.insert(0, str(Path(__file__).parent))
from programs import EXAMPLES, PROGRAMS, load, run  # noqa: E402

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
BY_NAME = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)


@BY_NAME
def test_three_steps_give_the_recorded_figures(program):
    result = run(program, tenon)
    expected = RECORDED[program.name]
    np.testing.assert_allclose(result.losses, expected["losses"], rtol=1e-8)
    summary = result.summary()
    assert list(summary) == list(expected["state"])
    for key, value in expected["state"].items():
        assert summary[key] == pytest.approx(value, rel=1e-6, abs=1e-7), key


COMMANDS = {
    "convnet": ["--epochs", "1", "--batch", "200"],
    "resnet": ["--size", "32", "--batch", "2", "--steps", "1"],
    "unet": ["--steps", "2", "--size", "16"],
    "vit": ["--epochs", "1", "--batch", "400"],
    "gpt": ["--steps", "2", "--samples", "2"],
    "llama": ["--steps", "2"],
    "moe": ["--steps", "2"],
    "lora": ["--steps", "2"],
}


@BY_NAME
def test_it_runs_as_a_command(program, tmp_path):
    flags = COMMANDS[program.name]
    if program.name == "gpt":
        words = tmp_path / "words"
        words.write_text("tenon\nmortise\nBob\njoint\n")
        flags = [*flags, "--words", str(words), "--picture", str(tmp_path / "loss.png")]
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{program.name}.py"), *flags],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


def small_gpt():
    module = load("gpt", tenon)
    tenon.manual_seed(0)
    return module.GPT(context=12, width=16, layers=2, heads=2)


def test_a_cache_gives_what_the_whole_row_gives():
    model = small_gpt()
    rows = tenon.randint(0, 27, (3, 12))
    with tenon.inference_mode():
        whole = model(rows)
        caches = model.new_caches(3)
        parts = [model(rows[:, :5], caches)] + [model(rows[:, i : i + 1], caches) for i in range(5, 12)]
    np.testing.assert_allclose(tenon.cat(parts, 1).numpy(), whole.numpy(), rtol=1e-4, atol=1e-6)


def test_a_cache_past_its_end_says_so():
    model = small_gpt()
    caches = model.new_caches(1)
    with tenon.inference_mode():
        model(tenon.zeros(1, 12, dtype=tenon.int64), caches)
        with pytest.raises(ValueError, match="the cache holds 12 positions, 13 are needed"):
            caches[0].append(tenon.zeros(1, 2, 1, 8), tenon.zeros(1, 2, 1, 8))


def test_each_expert_runs_on_its_own_tokens_only():
    module = load("moe", tenon)
    mixture = module.MixtureOfExperts(width=8, hidden=12, experts=5, top=2)
    seen = []
    for expert in mixture.experts:
        expert.register_forward_pre_hook(lambda _, arguments: seen.append(len(arguments[0])))
    mixture(tenon.randn(30, 8))
    assert sum(seen) == 60


def test_merged_adapters_compute_the_same():
    module = load("lora", tenon)
    layer = module.LoRALinear(tenon.nn.Linear(7, 5), rank=2)
    with tenon.no_grad():
        layer.B.normal_()
    x = tenon.randn(3, 7)
    np.testing.assert_allclose(layer(x).detach().numpy(), layer.merged()(x).detach().numpy(), rtol=1e-4, atol=1e-5)
