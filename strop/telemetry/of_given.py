"""The numbers of supervised and preference training, in training and on held-out rows."""

from strop.telemetry.declared import Declared


def of_given() -> tuple[Declared, ...]:
    weighted, weights = "weight × value of the responses", "their weights, which add up to 1 over an update"
    chosen, rejected = "chosen, or desirable, responses", "rejected, or undesirable, responses"
    said = "what the policy says they are worth: algo.preference.beta × the log-ratio to the reference"
    parts = (
        ("nll", "nats", "negative log-prob of a token; of pairs, the mean over the chosen response's"),
        ("rewards/chosen", "reward", f"of the {chosen}: {said}"),
        ("rewards/rejected", "reward", f"of the {rejected}: {said}"),
        ("rewards/margins", "reward", "chosen less rejected"),
        ("rewards/accuracies", "share", "pairs, or marks, that the policy or a reward model is right about"),
        ("squared_error", "reward²", "of a reward model's score, where responses are marked with numbers"),
        (
            "reference_point",
            "nats",
            "KTO's z: the log-ratio to the reference on mismatched responses, at least 0",
        ),
    )
    held_out = "rows of the set"
    return (
        *(Declared(f"train/{name}", unit, what, "mean", weighted, weights) for name, unit, what in parts),
        Declared("eval/<name>/loss", "loss", "as in training, on held-out rows", "mean", "losses", held_out),
        *(
            Declared(f"eval/<name>/{name}", unit, what, "mean", weighted, held_out)
            for name, unit, what in parts
        ),
        Declared(
            "eval/<name>/subset/<subset>",
            "share",
            "as the mean, over the rows whose metadata name the subset",
            "mean",
            "rows that a reward model is right about",
            "rows of the subset",
        ),
        Declared("eval/<name>/perplexity", "1", "e to the negative log-prob of a token", "last", "see nll"),
    )
