"""`strop plan`: what it says, how it ends, and that it leaves nothing behind."""

import json
from pathlib import Path

import pytest

from strop.cli.main import main
from strop.nn.loading import outline
from strop.nn.tiny import make_tiny

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
ROWS = '{"prompt": "ab", "label": "b"}\n{"prompt": "abc", "label": "c"}\n'
FLAGS = ["--prompts.files", "data.jsonl", "--loop.steps", "3", "--runtime.threads", "1"]
FLAGS += [
    "--rollout.batch_size",
    "2",
    "--rollout.samples_per_prompt",
    "2",
    "--rollout.max_response_tokens",
    "4",
]


@pytest.fixture
def plan(tiny_dir, tmp_path, monkeypatch, capsys):
    """`strop plan` of a small run; exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text(ROWS)

    def run(*flags):
        code = main(["plan", "--model", str(tiny_dir), *FLAGS, *flags])
        out, err = capsys.readouterr()
        assert sorted(path.name for path in tmp_path.iterdir() if path.name != "run") == ["data.jsonl"]
        return code, out, err

    return run


def test_a_plan_tells_batch_memory_and_time_and_leaves_nothing(plan):
    code, out, _ = plan()
    assert code == 0
    assert "2 prompts × 2 samples = 4 a step = 1 × 4 an update" in out
    assert "3: 3 updates, 6 prompts, 3 epochs of 2 rows" in out
    assert "← the peak" in out
    assert out.rstrip().splitlines()[-1].startswith("run       3 steps: ")


def test_prompts_of_over_sampling_and_of_filters_are_in_the_plan(plan):
    _, out, _ = plan("--no-probe", "--rollout.over_sample", "1", "--rollout.keep", "reward_std")
    assert "= 4 a step = 1 × 4 an update; 1 more prompts are played for it" in out
    assert "3: 3 updates, at least 9 prompts, 4.5 epochs of 2 rows" in out


def test_a_plan_without_a_probe_has_no_times(plan):
    code, out, _ = plan("--no-probe")
    assert (code, "time      not measured: --no-probe" in out) == (0, True)


def test_a_plan_as_json_has_every_part_and_the_peak(plan):
    code, out, _ = plan("--no-probe", "--json")
    found = json.loads(out)
    assert (code, found["fits"], found["time"], found["advice"]) == (0, True, None, None)
    assert found["memory"]["peak"] == max(found["memory"]["moments"].values())
    assert found["plan"]["samples_per_step"] == 4


def test_what_does_not_fit_ends_with_1_and_says_what_to_change(plan):
    code, out, _ = plan("--no-probe", "--memory-gib", "0.01")
    assert code == 1
    assert "does not fit" in out
    assert out.rstrip().endswith("take a smaller model, or a machine with more memory")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--memory-gib", "much"], "--memory-gib: expected a number of GiB, got much"),
        (["--measured", "nowhere"], "--measured nowhere"),
        (["--no-prob"], "--no-prob"),
    ],
)
def test_a_wrong_plan_is_one_line(plan, flags, line):
    code, _, err = plan(*flags)
    assert code == 2
    assert line in err
    assert err.count("\n") == 1


def test_what_is_not_forecast_of_rows_cannot_be_asked(capsys):
    assert main(["plan", str(ROOT / "examples/sft/run.toml"), "--memory-gib", "1"]) == 2
    assert "--memory-gib: neither memory nor time is forecast for runs on rows" in capsys.readouterr().err


def test_lengths_may_be_those_of_a_run(plan, tmp_path):
    from strop.store.run_dir import RunDirectory

    with RunDirectory.create(tmp_path / "run", "run", config={}) as run:
        run.metrics.append({"step": 0, "rollout/response_tokens": 2.5})
    _, out, _ = plan("--no-probe", "--json", "--measured", str(tmp_path / "run"))
    found = json.loads(out)
    assert (found["response_tokens"], found["response_is_measured"]) == (2.5, True)


@pytest.mark.parametrize("flags", [["--train.lora.rank", "4"], ["--engine.dtype", "bfloat16"]])
def test_the_probe_draws_and_trains_as_the_run_would(plan, flags):
    code, out, _ = plan("--json", *flags)
    times = json.loads(out)["time"]
    assert (code, times["step_s"] > 0, times["total_s"] >= 3 * times["step_s"]) == (0, True, True)


def test_a_critic_larger_than_the_policy_is_counted_as_large_as_it_is(plan, tmp_path_factory):
    large = make_tiny(tmp_path_factory.mktemp("critics") / "large", hidden=128)
    parts = [
        json.loads(plan("--no-probe", "--json", "--algo.type", "ppo", *own)[1])["memory"]["parts"]
        for own in ((), ("--algo.critic.model", str(large)))
    ]
    assert parts[0]["critic"] == 3 * parts[0]["weights"]
    assert parts[1]["critic"] == 3 * sum(4 * p.numel() for _, p in outline(large).named_parameters())
    assert parts[1]["critic"] > 2 * parts[0]["critic"]
