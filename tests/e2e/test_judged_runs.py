"""Whole runs that a judge rewards: one that cannot be read, one that can, and rewards of single steps."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from judges import preferred, replies_in, scored
from processes import Shell
from run_facts import first_difference

from strop.sample import STEP_REWARDS
from strop.store.ledger import audit
from strop.store.reader import RunReader
from strop.store.samples import read_samples

RUN = """
model = "tiny"
prompts.source = "task.py:some_letters"
rollout = {{ batch_size = 2, samples_per_prompt = 4, max_response_tokens = 12, max_tries = 2 }}
train.optim.lr = 1e-3
telemetry.show_sample_every = 0
runtime.threads = 1
loop.steps = 2
{rest}
"""


def run_file(directory: Path, rest: str) -> Path:
    task = Path(__file__).with_name("task.py").read_text()
    (directory / "task.py").write_text(task)
    (directory / "run.toml").write_text(RUN.replace("task.py:", f"{directory}/task.py:").format(rest=rest))
    return directory / "run.toml"


@contextmanager
def judge_on_the_net() -> Iterator[str]:
    """Scores by the number of high bytes in a reply, and prefers the reply that has more of them."""

    class Judge(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            question = asked["messages"][0]["content"]
            worth = [sum(character == "\ufffd" for character in reply) for reply in replies_in(question)]
            if len(worth) == 1:
                said = scored(1 + min(9, worth[0]))
            else:
                said = preferred("tie" if worth[0] == worth[1] else "AB"[worth[1] > worth[0]])
            body = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def judged(url: str, **options: object) -> str:
    extra = "".join(f", {key} = {json.dumps(value)}" for key, value in options.items())
    return f'reward.fn = "judge"\nreward.options = {{ model = "net", url = "{url}"{extra} }}'


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny", "policy"])
def test_a_judge_that_says_nothing_ends_the_run_by_name_and_gives_no_reward(
    shell: Shell, tmp_path: Path, model: str
) -> None:
    options = f'{{ model = "{model}", max_tokens = 8, samples = 2, cache_tokens = 4096 }}'
    file = run_file(tmp_path, f'reward = {{ fn = "judge", retries = 1, options = {options} }}')
    ended = shell.run("train", file, "--store.dir", tmp_path / "run")
    assert ended.code == 1
    assert re.search(rf"judge {model}: none of 4 judgings could be read", ended.err), ended.err
    books = audit(RunReader(tmp_path / "run").ledger())
    assert books.is_balanced
    assert books.issued == 4
    assert all("none of 4 judgings" in reason for reason in books.reasons)


@pytest.mark.slow
def test_a_judge_that_scores_trains_and_equal_runs_are_judged_alike(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with judge_on_the_net() as url:
        file = run_file(tmp_path, judged(url))
        for name in ("one", "two"):
            ended = shell.run("train", file, "--store.dir", tmp_path / name)
            assert ended.code == 0, ended.err
    record = next(iter(RunReader(tmp_path / "one").metrics()))
    assert record["reward/score/judge_failed"] == 0
    assert record["reward/mean"] == pytest.approx((record["reward/score/judge_score"] - 1) / 9)
    assert record["reward/std"] > 0
    assert first_difference(tmp_path / "one", tmp_path / "two", capsys) is None


@pytest.mark.slow
def test_a_judge_that_compares_ranks_groups(shell: Shell, tmp_path: Path) -> None:
    with judge_on_the_net() as url:
        rest = judged(url, form="pairwise") + '\nreward.group = true\nalgo.advantage = "rank"'
        ended = shell.run("train", run_file(tmp_path, rest), "--store.dir", tmp_path / "run")
    assert ended.code == 0, ended.err
    for file in (tmp_path / "run/samples").rglob("*.parquet"):
        samples = read_samples(file)
        for group in {sample.group_id for sample in samples}:
            rewards = [sample.reward for sample in samples if sample.group_id == group]
            assert sum(rewards) == pytest.approx(2.0), "of four in a round robin, whoever wins"


@pytest.mark.slow
@pytest.mark.parametrize("advantage", ["steps", "turns"])
def test_steps_are_trained_and_shown(shell: Shell, tmp_path: Path, advantage: str) -> None:
    (tmp_path / "mine.py").write_text(
        "from strop.rewards.steps import scores_of_steps, split_steps\n"
        "def f(sample):\n"
        "    steps = split_steps(sample.response, '\\ufffd')\n"
        "    return scores_of_steps([float(len(step)) for step in steps], separator='\\ufffd', worth='sum')\n"
    )
    rest = f'reward.fn = "{tmp_path}/mine.py:f"\nalgo.advantage = "{advantage}"'
    ended = shell.run("train", run_file(tmp_path, rest), "--store.dir", tmp_path / "run")
    assert ended.code == 0, ended.err
    (file, *_) = sorted((tmp_path / "run/samples/step-0").glob("*.parquet"))
    samples = read_samples(file)
    assert all(sample.extras[STEP_REWARDS].sum() == pytest.approx(sample.reward) for sample in samples)
    assert "(steps: " in shell.run("show", tmp_path / "run").out
