"""Mathematical answers: slime's values, and nothing that an answer says can hang a run or be executed."""

import asyncio
import threading

import pytest

from strop.config.tree import Reward
from strop.errors import MissingPackage, PluginError
from strop.rewards.equality import WORKER
from strop.rewards.open import open_rewards
from strop.rewards.workers import Workers
from strop.sample import Sample, Scores

# ruff: noqa: E501 (a message is one line, here as there)

FAST = Scores(1.0, {"math_timeout": 0.0})
SLOW = Scores(0.0, {"math_timeout": 1.0})
WRONG = Scores(0.0, {"math_timeout": 0.0})


def sample(response, label):
    return Sample(index=0, group_id=0, prompt_id="p", response=response, label=label)


async def scored(pairs, *, fn="math", concurrency=2, **options):
    """What each (response, label) is worth."""
    rewards = open_rewards(Reward(fn=fn, options=options, timeout_s=60, retries=0, concurrency=concurrency))
    try:
        return await asyncio.gather(*(rewards.score(sample(*pair)) for pair in pairs))
    finally:
        await rewards.close()


async def worth(response, label, **keys):
    (scores,) = await scored([(response, label)], **keys)
    return scores.value


async def test_what_spelling_tells_needs_no_process():
    cases = [
        (r"\boxed{1}, no: \boxed{\frac{1}{2}}", "1/2", 1),
        (r"\boxed{0.5}", r"\frac12", 1),
        (r"\boxed{45^\circ}", 45, 1),
        (r"\boxed{2/4}", "1/2", 0),
        ("1/2", "1/2", 0),
        (r"\boxed{1/2", "1/2", 0),
        (r"\boxed{}", "1/2", 0),
        (r"\fbox{7}", r"so it is \boxed{7}", 1),
        (r"\boxed{7}", 7.0, 1),
    ]
    for response, label, value in cases:
        assert await worth(response, label) == value, (response, label)


async def test_deepscaler_wants_an_answer_behind_the_thought():
    cases = [
        (r"thinking</think> \boxed{0.5}", "1/2", 1),
        (r"###Response so \boxed{7}", 7, 1),
        (r"###Response so \boxed{7}", r"\boxed{7}", 1),
        (r"<think>\boxed{7}</think> 7", 7, 0),
        (r"\boxed{7}", 7, 0),
    ]
    for response, label, value in cases:
        assert await worth(response, label, fn="deepscaler") == value, (response, label)


@pytest.mark.slow
def test_answers_outside_the_main_thread_are_not_all_scored_0():
    """Known fault H2: math-verify's own time limit works in the main thread alone."""
    found = []
    pairs = [(r"\boxed{x+1}", "1+x"), (r"\boxed{x+2}", "1+x"), (r"\boxed{2+2}", 4)]
    thread = threading.Thread(target=lambda: found.extend(asyncio.run(scored(pairs, concurrency=1))))
    thread.start()
    thread.join()
    assert found == [FAST, WRONG, WRONG]


@pytest.mark.slow
async def test_answers_are_compared_as_mathematics():
    equal = [
        (r"(x+1)^2", "x^2+2x+1"),
        ("0.333333", "1/3"),
        (r"50\%", "0.5"),
        (r"\{2,1\}", r"\{1,2\}"),
        ("(1,2)", "( 1 , 2 )"),
        (r"\pi/2", r"\frac{\pi}{2}"),
        (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
        ("east", r"\text{east}"),
    ]
    different = [("2", "3"), ("(1,2)", "[1,2]"), ("x", "y"), ("1,2", "1"), (r"\sqrt{16}", "4"), ("x=5", "4")]
    found = await scored([(rf"\boxed{{{answer}}}", label) for answer, label in equal + different])
    assert [scores.value for scores in found] == [1] * len(equal) + [0] * len(different)
    assert await worth(r"\boxed{\sqrt{16}}", 4, reduced=False) == 1


HOSTILE = {
    "a tower of powers": "9^{9^{9^{9}}}",
    "a tower of powers in Python": "9**9**9**9",
    "a huge factorial": r"(10^8)!",
    "a huge power": r"2^{10000000}",
    "nested fractions": r"\frac{1}{" * 90 + "1" + "}" * 90,
    "a program": "__import__('os').system('touch owned')",
    "a function": "lambda: open('owned', 'w')",
    "a program in text": r"\text{__import__('os').system('touch owned')}",
    "unbalanced": "}{}{",
    "a NUL": "\0 4",
    "a surrogate": "\ud800 4",
    "an integral": r"\int e^{x^{x}} \sin(x^{x}) dx",
    "parentheses": "(" * 400 + "1" + ")" * 400,
}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_no_answer_hangs_or_executes_and_the_next_is_scored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [(rf"\boxed{{{answer}}}", "x+1") for answer in HOSTILE.values()]
    found = await scored([*pairs, (r"\boxed{1+x}", "x+1")])
    assert set(map(str, found[:-1])) <= {str(SLOW), str(WRONG)}
    assert found[0] == SLOW
    assert found[-1] == FAST
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "response",
    [
        r"\boxed{" + "x" * 1_000_000 + "}",
        r"\boxed{" + r"\frac{1}{" * 10_000 + "1" + "}" * 10_000 + "}",
        r"\boxed{" * 100_000,
        r"\boxed{" + "9" * 100_000 + "}",
    ],
    ids=["a megabyte", "nested fractions", "boxes without end", "digits"],
)
async def test_an_answer_of_any_length_costs_nothing(response):
    assert await scored([(response, "x+1")]) == [WRONG]


async def test_a_missing_label_fails_instead_of_scoring_0():
    with pytest.raises(Exception, match="prompt 'p' has no label to compare with"):
        await worth(r"\boxed{4}", None)


def test_without_math_verify_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingPackage) as caught:
        open_rewards(Reward(fn="math"))
    assert str(caught.value) == "reward.fn = 'math' needs math-verify: pip install 'strop[math]'"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            Reward(fn="math", timeout_s=5),
            "reward.timeout_s = 5: math starts processes and bounds each comparison itself; give it at least 10",
        ),
        (Reward(fn="boxed_math"), "reward.fn = 'boxed_math': math has no boxed form; name 'math'"),
        (
            Reward(fn="boxed_ifbench"),
            "reward.fn = 'boxed_ifbench': not built in: its checks are a program that would be fetched and "
            "installed in the middle of a run; install them yourself and name a function of yours: file.py:name",
        ),
    ],
)
def test_what_cannot_work_is_one_line(section, message):
    with pytest.raises(PluginError) as caught:
        open_rewards(section)
    assert str(caught.value) == message


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [r"\frac{1}{" * 10_000 + "1" + "}" * 10_000, "x" * 1_000_000],
    ids=["nested fractions", "a megabyte"],
)
async def test_the_process_ends_over_what_is_too_much_for_it(answer):
    workers = Workers(WORKER, what="comparing")
    assert await workers.ask({"answer": answer, "label": "1", "reduced": True}) is None
    await workers.close()
