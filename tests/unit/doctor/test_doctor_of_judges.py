"""What `strop doctor` says of a judge whose judgings it has seen."""

from judges import replied

from strop.doctor.rollouts import judge_findings
from strop.finding import Level


def test_a_judge_that_is_seldom_read_or_goes_by_the_place_is_warned_of() -> None:
    samples = replied("a", "b")
    for sample in samples:
        sample.scores = {"judge/judge_failed": 0.75, "judge/judge_ties": 1.0}
    unread, ties = judge_findings(samples)
    assert (unread.level, ties.level) == (Level.WARN, Level.WARN)
    assert unread.text.startswith("75% of judgings could not be read; give the judge more max_tokens")
    assert ties.text.startswith("100% of comparisons are ties")


def test_a_judge_that_is_read_is_ok_and_a_run_without_one_says_nothing() -> None:
    samples = replied("a", "b")
    assert list(judge_findings(samples)) == []
    samples[0].scores = {"judge_failed": 0.0, "judge_score": 7.0}
    (found,) = judge_findings(samples)
    assert (found.level, found.text) == (Level.OK, "0% of judgings could not be read")
