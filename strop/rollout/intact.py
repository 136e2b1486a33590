"""What user code may change about a finished sample: much, but not what it is, nor that it can be trained."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from strop.errors import Recorded, RunError
from strop.rollout.custom import check_kept_sets
from strop.sample import Sample, Sampling, Status
from strop.store.json_text import encode_exact
from strop.tokens import Tokens


@contextmanager
def kept_intact(samples: Sequence[Sample]) -> Iterator[None]:
    """Around hooks and rewards: a sample that they leave as one that cannot be trained has failed, and keeps
    its place in the books."""
    before = [(sample, _Place.of(sample)) for sample in samples]
    try:
        yield
    finally:  # also when they cancelled their own task
        for sample, place in before:
            problem = place.problem(sample) or _problem(sample)
            place.restore(sample)
            if problem:
                sample.sequence, sample.prompt_length = place.sequence, place.prompt_length
                if _problem_of_metadata(sample):
                    sample.metadata = {}
                sample.fail(Recorded(f"a hook or the reward left {problem}"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Of a sample in the books of the run."""

    index: int
    group_id: int
    trajectory_id: int
    prompt_id: str
    sampling: Sampling | None
    sequence: Tokens
    prompt_length: int

    @classmethod
    def of(cls, sample: Sample) -> "_Place":
        return cls(
            sample.index,
            sample.group_id,
            sample.trajectory_id,
            sample.prompt_id,
            sample.sampling,
            sample.sequence,
            sample.prompt_length,
        )

    def problem(self, sample: Sample) -> str | None:
        own = (sample.index, sample.group_id, sample.trajectory_id, sample.prompt_id, sample.sampling)
        if own != (self.index, self.group_id, self.trajectory_id, self.prompt_id, self.sampling):
            return "another sample.index, group_id, trajectory_id, prompt_id or sampling; these are the run's"
        sequence: object = sample.sequence  # user code puts anything in
        if not isinstance(sequence, Tokens):
            return f"sample.sequence a {type(sequence).__name__}; expected strop.Tokens"
        is_whole = sequence is self.sequence or sequence.untrained() == self.sequence.untrained()
        if sample.prompt_length != self.prompt_length or not is_whole:
            return "other tokens than were drawn; of sample.sequence it may change the mask alone"
        return None

    def restore(self, sample: Sample) -> None:
        sample.index, sample.group_id = self.index, self.group_id
        sample.trajectory_id, sample.prompt_id = self.trajectory_id, self.prompt_id
        sample.sampling = self.sampling


def _problem(sample: Sample) -> str | None:
    status: object = sample.status  # user code puts anything in
    if not isinstance(status, Status) or status is Status.PENDING:
        return f"sample.status = {status!r}; expected a strop.Status, and not pending"
    if problem := _problem_of_metadata(sample):
        return problem
    if status is Status.FAILED:
        return None if sample.error else "sample.status = failed without a sample.error that says how"
    if sample.sequence.is_given:
        return "a mask on tokens of which none was sampled"
    response: object = sample.response
    if not isinstance(response, str):
        return f"sample.response a {type(response).__name__}; expected text"
    return _problem_of_sets(sample)


def _problem_of_metadata(sample: Sample) -> str | None:
    metadata: object = sample.metadata
    if not isinstance(metadata, dict):
        return f"sample.metadata = {metadata!r}; expected a dict"
    try:
        encode_exact(metadata, "a sample.metadata")
    except RunError as caught:
        return str(caught)
    return None


def _problem_of_sets(sample: Sample) -> str | None:
    if sample.sampling is None or sample.status is Status.ABORTED:
        return None
    try:
        check_kept_sets(sample, sample.sampling)
    except ValueError as caught:
        return f"other tokens than their kept sets: {caught}"
    return None
