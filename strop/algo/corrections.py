"""From the keys of `[algo.correction]` to the rules by which tokens are weighed."""

from strop.algo.correction import Rules, Weighting, Window
from strop.config.algo import Correction, window_of


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
    low, high = window_of(section.type, low=section.low, high=section.high)
    window = Window(section.level, low=low, high=high)
    return Weighting(window, "mask" if section.type in ("mis", "icepop") else "clip")
