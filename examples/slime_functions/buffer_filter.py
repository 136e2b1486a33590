"""Functions that choose from the buffer, in both of slime's forms."""


def buffer_filter(args, rollout_id, buffer, num_samples):
    """The source's form: groups, the latest first; what is taken is taken out."""
    return [buffer.pop() for _ in range(min(len(buffer), num_samples))]


def best_first(args, buffer, num_samples):
    """The page's form: samples, one for each group."""
    ranked = sorted(buffer, key=lambda sample: sample.reward["score"], reverse=True)
    return ranked[:num_samples]
