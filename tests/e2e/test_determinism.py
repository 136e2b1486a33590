"""Tokens are exact: what was drawn, by which weights, at which log-prob, is what is trained."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from processes import Shell

from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.sample import Sample
from strop.store.reader import RunReader

# T tokens, V vocabulary

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(whole: Path) -> RunReader:
    return RunReader(whole)


@pytest.fixture(scope="module")
def samples(run: RunReader) -> list[Sample]:
    """Of every step."""
    return [sample for step in run.sample_steps() for sample in run.samples(step)]


@pytest.fixture(scope="module")
def with_two_turns(samples: list[Sample]) -> list[Sample]:
    """Those to which the calculator answered and after which the model went on."""
    return [s for s in samples if s.sequence.sampled[-1] and len(_turns(s)) == 2]


def test_every_token_of_a_step_is_drawn_by_the_weights_that_the_step_trains(run: RunReader) -> None:
    for step in range(5):
        for sample in run.samples(step):
            assert set(sample.sequence.versions[sample.sequence.sampled]) == {step}
        assert run.metrics()[step]["rollout/staleness_max"] == 0


def test_engine_and_trainer_agree_on_every_step(run: RunReader) -> None:
    gaps = [record["train/train_rollout_logprob_abs_diff_max"] for record in run.metrics()]
    assert len(gaps) == 5
    assert all(0 <= gap < 1e-4 for gap in gaps)


def test_recorded_logprobs_are_those_of_transformers(run: RunReader, shell: Shell) -> None:
    for sample in run.samples(0):
        logp_TV = _logp(shell.home / "models/tiny", sample)
        sampled = sample.sequence.sampled
        expected = logp_TV[np.arange(len(sample.sequence)), sample.sequence.ids][sampled]
        np.testing.assert_allclose(sample.sequence.behavior[sampled], expected, atol=1e-4)


def test_the_last_greedy_evaluation_is_what_the_last_checkpoint_says(run: RunReader) -> None:
    checkpoint = run.checkpoint()
    assert checkpoint is not None
    for sample in run.eval_samples("greedy", 5):
        likeliest = _logp(checkpoint.path, sample).argmax(-1)
        sampled = sample.sequence.sampled
        assert (sample.sequence.ids == likeliest)[sampled].all()


def test_the_environments_tokens_are_not_trained(with_two_turns: list[Sample]) -> None:
    assert len(with_two_turns) > 5
    for sample in with_two_turns:
        tokens = sample.sequence
        others = ~tokens.sampled
        assert others[sample.prompt_length :].any()
        assert not tokens.mask[others].any()
        assert (tokens.versions[others] == -1).all()
        assert np.isnan(tokens.behavior[others]).all()


def test_the_environments_tokens_are_its_message_and_nothing_else(with_two_turns: list[Sample]) -> None:
    renderer = ByteRenderer()
    for sample in with_two_turns:
        first, second = _turns(sample)
        reply = sample.sequence.ids[first].tolist()
        answer = {"role": "tool", "content": f"= {len(renderer.decode(reply)) + 1}"}
        expected = renderer.follow_up([], [answer], last_id=reply[-1])
        assert sample.sequence.ids[first.stop : second.start].tolist() == expected


def test_everything_that_the_model_drew_is_trained(samples: list[Sample]) -> None:
    assert all((s.sequence.mask == s.sequence.sampled).all() for s in samples)


def test_a_stop_token_is_kept_where_it_was_drawn(with_two_turns: list[Sample]) -> None:
    assert all(_is_stop(s.sequence.ids[_turns(s)[0].stop - 1]) for s in with_two_turns)


def _turns(sample: Sample) -> list[slice]:
    """Where the model spoke."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], sample.sequence.sampled, [0]]).astype(np.int8)))
    return [slice(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _is_stop(token: int) -> bool:
    return token == END_OF_TURN or 91 <= token <= 121 or 191 <= token <= 221


def _logp(model: Path, sample: Sample) -> NDArray[np.float32]:
    """[T, V] log-probs before each token by transformers alone; NaN before the first."""
    from transformers import AutoModelForCausalLM

    ids = torch.from_numpy(sample.sequence.ids.astype(np.int64))[None]
    with torch.inference_mode():
        logits = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)(ids).logits[0]
    logp_TV = torch.log_softmax(logits, -1).numpy()
    return np.concatenate([np.full_like(logp_TV[:1], np.nan), logp_TV[:-1]])
