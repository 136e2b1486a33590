"""`Report`: how the groups of a step came about."""

from collections import Counter
from dataclasses import dataclass, field

from strop.telemetry.metrics import Cell, Mean


@dataclass(slots=True)
class Report:
    """How a step's groups came about."""

    rounds: int = 0
    issued: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Groups by reason."""
    cells: dict[Cell, Mean] = field(default_factory=dict)
    """Rewards of the trajectories of every finished group, before the filter: the accuracy of the policy, not
    of the kept."""
    num_tokens: int = 0
    """Drawn, also for groups that were dropped."""
    seconds: float = 0.0
    is_given: bool = False
    """Whether data gave the groups: nothing was drawn and nothing rewarded."""
