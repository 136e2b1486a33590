"""From the keys of `[algo.correction]` to the rules by which tokens are weighed."""

import math

from strop.algo.correction import Rules, Weighting, Window
from strop.config.algo import Correction

WINDOWS = {"tis": (0.0, 2.0), "mis": (0.5, 2.0), "icepop": (0.5, 5.0), "decoupled": (0.0, math.inf)}
"""Lowest and highest weight, unless given."""


def correction_rules(section: Correction) -> Rules | None:
    """What is done to the policy loss; None: nothing."""
    rejection = None
    if section.reject != "none":
        rejection = Window(section.reject, low=section.reject_low, high=section.reject_high)
    rules = Rules(weighting=_weighting(section), rejection=rejection, veto=section.veto)
    return None if rules == Rules() else rules


def _weighting(section: Correction) -> Weighting | None:
    if section.type == "none":
        return None
    low, high = WINDOWS[section.type]
    window = Window(
        section.level,
        low=low if section.low is None else section.low,
        high=high if section.high is None else section.high,
    )
    return Weighting(window, "mask" if section.type in ("mis", "icepop") else "clip")
