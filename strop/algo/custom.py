"""Functions of the user's own in `[algo]`: found, and called as they should be, before a run begins."""

from strop.algo import credit, policy_losses
from strop.config.algo import Algo
from strop.config.algo_rules import BUILT_IN_ADVANTAGES, BUILT_IN_LOSSES
from strop.plugins import check_call, resolve


def check_functions(section: Algo) -> None:
    """Raises PluginError for a name that is none, or a function that takes something else."""
    for name, spec, built_in, group, takes in (
        ("advantage", section.advantage, BUILT_IN_ADVANTAGES, credit.GROUP, "batch"),
        ("policy_loss", section.policy_loss, BUILT_IN_LOSSES, policy_losses.GROUP, "inputs"),
    ):
        if spec not in built_in:
            key = f"algo.{name}"
            fn = resolve(spec, key=key, names=dict.fromkeys(built_in), group=group)
            check_call(fn, (takes,), key=f"{key} = {spec!r}", awaited=False)
