"""A teacher that cannot teach is refused before anything is read, in one line."""

import pytest
from cases import case

from strop.config.load import load_config
from strop.errors import ConfigError

BASE = ["--model", "tiny", "--loop.steps", "1", "--prompts.files", "/a"]
TINY = "--algo.teacher.model tiny"
MESSAGES = {
    "--algo.type opd": '--algo.type: algo.type = "opd" (--algo.type) learns from a teacher alone; give algo.teacher.model',
    "--algo.advantage none": '--algo.advantage: algo.advantage = "none" (--algo.advantage) learns from a teacher alone; give algo.teacher.model',
    "--algo.teacher.model policy": '--algo.teacher.model: algo.teacher.model = "policy" (--algo.teacher.model) is the policy itself, from which it learns nothing unless it is shown more; give algo.teacher.hint_key, or another model',
    f"{TINY} --algo.teachers [{{model='tiny'}}]": '--algo.teacher.model: algo.teacher.model = "tiny" (--algo.teacher.model) and algo.teachers (--algo.teachers) exclude each other; make it one of these tables',
    f"{TINY} --algo.teacher.hint_key hint --rollout.generate /b.py:g": '--algo.teacher.hint_key: algo.teacher.hint_key = "hint" (--algo.teacher.hint_key) goes before a prompt that strop renders, but rollout.generate = "/b.py:g" (--rollout.generate) renders its own; remove one',
    "--prompts.mixture [{name='a',files=['/a']}] --algo.teachers [{model='tiny',sources=['a','b']}]": '--algo.teachers: algo.teachers.0.sources = ["a", "b"] (--algo.teachers): prompts.mixture has no part "b"; it has a',
    "--algo.teacher.coef 2": "--algo.teacher.coef: algo.teacher.coef = 2.0 (--algo.teacher.coef) has no effect with algo.teacher.model = null (default); remove one",
    f"{TINY} --algo.teacher.beta 0.5": '--algo.teacher.beta: algo.teacher.beta = 0.5 (--algo.teacher.beta) has no effect with algo.teacher.form = "sampled" (default); remove one',
    f"{TINY} --algo.teacher.form full --algo.teacher.top_k 3": '--algo.teacher.top_k: algo.teacher.top_k = 3 (--algo.teacher.top_k) has no effect with algo.teacher.form = "full" (--algo.teacher.form); remove one',
    f"{TINY} --algo.type opd --algo.teacher.form full --algo.clip_low 0.1": '--algo.clip_low: algo.clip_low = 0.1 (--algo.clip_low) has no effect with algo.teacher.form = "full" (--algo.teacher.form); remove one',
    f"{TINY} --algo.type opd --algo.teacher.form full --algo.correction.type tis": '--algo.correction.type: algo.correction.type = "tis" (--algo.correction.type) has no effect with algo.teacher.form = "full" (--algo.teacher.form); remove one',
    f"{TINY} --algo.type opd --algo.teacher.form full --algo.correction.veto 0.1": '--algo.correction.veto: algo.correction.veto = 0.1 (--algo.correction.veto) has no effect with algo.teacher.form = "full" (--algo.teacher.form); remove one',
    f"--algo.type sft {TINY}": '--algo.teacher.model: algo.teacher.model = "tiny" (--algo.teacher.model) has no effect with algo.objective = "nll" (algo.type = sft); remove one',
    "--algo.teacher.model runs/t --algo.teacher.train_first /b.toml": '--algo.teacher.model: algo.teacher.model = "runs/t" (--algo.teacher.model) reads as a name of the Hub, but algo.teacher.train_first = "/b.toml" (--algo.teacher.train_first) makes a directory; write "./runs/t"',
    "--algo.teacher.model smollm2-135m --algo.teacher.train_first /b.toml": '--algo.teacher.model: algo.teacher.model = "smollm2-135m" (--algo.teacher.model) reads as the name of a model, but algo.teacher.train_first = "/b.toml" (--algo.teacher.train_first) makes a directory; write "./smollm2-135m"',
    "--algo.teacher.model policy --algo.teacher.hint_key hint --algo.teacher.train_first /b.toml": '--algo.teacher.model: algo.teacher.model = "policy" (--algo.teacher.model) is the policy itself, but algo.teacher.train_first = "/b.toml" (--algo.teacher.train_first) makes a directory, from which nobody would learn; remove one, or write "./policy"',
    "--use-opd": "--use-opd: there is no teacher; give --opd-teacher-load DIRECTORY, or remove --use-opd",
    "--opd-type sglang --opd-teacher-load tiny": "--opd-type: not supported yet: a teacher behind a server; it is a model beside the trainer: --opd-teacher-load DIRECTORY",
}
# ruff: noqa: E501 (a message is one line, here as there)


def test_what_is_wrong_with_a_teacher() -> None:
    for flags, line in MESSAGES.items():
        with case(flags):
            with pytest.raises(ConfigError) as caught:
                load_config([], [*(BASE[:4] if "mixture" in flags else BASE), *flags.split()])
            assert str(caught.value) == line


@pytest.mark.parametrize("more", ["--algo.kl_coef 0.1", "--algo.policy_loss mine.py:loss"])
def test_bounds_count_beside_a_divergence_where_something_else_is_learnt_too(more: str) -> None:
    flags = f"{TINY} --algo.type opd --algo.teacher.form full --algo.opsm_delta 0.1 {more}"
    assert load_config([], [*BASE, *flags.split()]).config.algo.opsm_delta == 0.1


def test_slimes_flags_put_a_teacher_beside_any_estimator() -> None:
    flags = "--use-opd --opd-type megatron --opd-teacher-load /teacher --opd-kl-coef 0.5 --advantage-estimator gspo"
    algo = load_config([], [*BASE, *flags.split()]).config.algo
    assert (algo.type, algo.advantage, algo.teacher.form) == ("gspo", "group", "sampled")
    assert (algo.teacher.model, algo.teacher.coef) == ("/teacher", 0.5)


def test_distillation_alone_asks_for_no_reward_unless_one_is_given() -> None:
    loaded = load_config([], [*BASE, *f"--algo.type opd {TINY}".split()])
    assert (loaded.config.reward.fn, loaded.config.algo.advantage) == ("none", "none")
    given = load_config([], [*BASE, *f"--algo.type opd {TINY} --reward.fn exact".split()])
    assert given.config.reward.fn == "exact"
