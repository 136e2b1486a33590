"""Reward functions as slime's users write them: of one sample, and of a batch (`--group-rm`)."""


def share_of_digits(response: str) -> float:
    return sum(letter.isdigit() for letter in response) / max(len(response), 1)


async def reward_func(args, sample, **kwargs):
    """A table; `--reward-key score` trains on one entry of it."""
    return {"score": share_of_digits(sample.response), "length": sample.response_length}


async def batched_custom_rm(args, samples):
    """One number for each sample: better than most of its group, or not."""
    shares = [share_of_digits(sample.response) for sample in samples]
    middle = sorted(shares)[len(shares) // 2]
    return [float(share > middle) + share for share in shares]
