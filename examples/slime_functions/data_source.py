"""A data source as slime's users write one, and a function that adds groups back to a source."""

import copy

from slime.utils.types import Sample


class Sums:
    """Sums that never repeat, made up as they are asked for."""

    def __init__(self, args):
        self.args = args
        self.count = 0

    def get_samples(self, num_samples):
        return [self.group() for _ in range(num_samples)]

    def group(self):
        first, second = self.count % 10, self.count // 10 % 10
        self.count += 1
        sample = Sample(prompt=f"{first} + {second} =", label=str(first + second))
        return [copy.deepcopy(sample) for _ in range(self.args.n_samples_per_prompt)]

    def add_samples(self, samples):
        pass

    def __len__(self):
        return 100


def add_hard_ones_back(args, all_samples, data_source):
    """`--rollout-all-samples-process-path`: groups in which nobody did well are played again later."""
    hard = [group for group in all_samples if all(sample.reward["score"] < 0.05 for sample in group)]
    data_source.add_samples(hard[:1])
