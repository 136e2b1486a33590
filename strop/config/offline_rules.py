"""What must hold between the keys of a run whose groups are given by rows; which keys do nothing in it."""

from collections.abc import Callable, Iterator

from strop.config.idle import Idle
from strop.config.offline import NEEDS_REFERENCE, SCORING, SHAPES, Shape
from strop.config.tree import Config
from strop.config.view import View

_OBJECTIVE = "algo.objective"
_GROUP_SIZES = {"texts": 1, "pairs": 2, "marked": 1, "scored": 1}


def is_offline(config: Config) -> bool:
    """Whether rows give what is trained: there is neither an engine nor a sync."""
    return config.algo.objective != "reward"


def shape_of(config: Config) -> Shape | None:
    """What rows hold, where they hold what is trained."""
    return SHAPES.get(config.algo.objective)


def is_scoring(config: Config) -> bool:
    """Whether a reward model is trained."""
    return config.algo.objective in SCORING


def _groups_are_rows(view: View) -> Iterator[str]:
    objective, key = view.value(_OBJECTIVE), "rollout.samples_per_prompt"
    if objective == "reward":
        return
    if SHAPES[objective] == "ranked":
        if view.value(key) == 1:
            yield f"{view.at(key, _OBJECTIVE)}: {view.said(key)} leaves nothing to rank; give at least 2"
        return
    size = _GROUP_SIZES[SHAPES[objective]]
    if view.value(key) != size:
        holds = "the two responses of a pair" if size == 2 else "one response"
        yield (
            f"{view.at(key, _OBJECTIVE)}: {view.said(key)} with {view.said(_OBJECTIVE)}, whose rows hold "
            f"{holds}: set it to {size}, as algo.type does"
        )


def _pairs_stay_whole(view: View) -> Iterator[str]:
    key, size = "train.batch_size", view.config.rollout.samples_per_prompt
    updates = view.config.train.updates_per_step
    if is_offline(view.config) and size > 1 and (view.value(key) or 0) % size:
        torn, way_out = ("a pair", "even") if size == 2 else ("a list", f"a multiple of {size}")
        yield f"{view.at(key)}: {view.said(key)} would tear {torn} apart; make it {way_out}"
    elif is_offline(view.config) and size > 1 and view.config.rollout.batch_size % updates:
        rows, several = "rollout.batch_size", "train.updates_per_step"
        yield (
            f"{view.at(several, rows)}: {view.said(rows)} rows cannot be dealt to {view.said(several)} "
            f"whole; make {rows} a multiple of {updates}"
        )


def _others_to_compare_with(view: View) -> Iterator[str]:
    key, updates = "rollout.batch_size", view.config.train.updates_per_step
    if view.value(_OBJECTIVE) == "kto" and view.value(key) < 2 * updates:
        yield (
            f"{view.at(key)}: {view.said(key)} leaves an update fewer than 2 rows; {view.said(_OBJECTIVE)} "
            f"compares each prompt with the response of another: give at least {2 * updates}"
        )


def _rows_come_from_files(view: View) -> Iterator[str]:
    if not is_offline(view.config):
        return
    sources = ["prompts.source"]
    sources += [f"prompts.mixture.{i}.source" for i in range(len(view.config.prompts.mixture))]
    sources += [f"eval.datasets.{i}.source" for i in range(len(view.config.eval.datasets))]
    for key in sources:
        if view.value(key) is not None:
            yield (
                f"{view.at(key)}: {view.said(key)} makes prompts, but {view.said(_OBJECTIVE)} trains on rows "
                "of files; give files"
            )


_OF_PLAYING = (
    "reward",
    "samples_per_prompt",
    "pass_threshold",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_response_tokens",
    "stop",
)


def _held_out_rows_are_not_played(view: View) -> Iterator[str]:
    if not is_offline(view.config):
        return
    for number, section in enumerate(view.config.eval.datasets):
        for name in sorted(section.model_fields_set & set(_OF_PLAYING)):
            key = f"eval.datasets.{number}.{name}"
            yield (
                f"{view.at(key)}: {view.said(key)} has no effect with {view.said(_OBJECTIVE)}: nothing is "
                "played; remove it"
            )


RULES: tuple[Callable[[View], Iterator[str]], ...] = (
    _groups_are_rows,
    _pairs_stay_whole,
    _others_to_compare_with,
    _rows_come_from_files,
    _held_out_rows_are_not_played,
)


def _compares_tokens(config: Config) -> bool:
    return config.algo.objective == "bradley_terry" and config.algo.reward_model.per_token


def _unless(*objectives: str) -> Callable[[Config], bool]:
    return lambda config: config.algo.objective not in objectives


_PAIRS = tuple(objective for objective, shape in SHAPES.items() if shape == "pairs")
_PREFERENCES = tuple(objective for objective in _PAIRS if objective not in SCORING)
_PLAYED = (
    *(
        f"rollout.{name}"
        for name in (
            "max_response_tokens",
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "max_context_tokens",
            "stop",
            "stop_token_ids",
            "ignore_eos",
            "over_sample",
            "keep",
            "max_tries",
            "generate",
            "hooks",
        )
    ),
    *(f"env.{name}" for name in ("type", "options", "max_turns", "timeout_s")),
    *(f"engine.{name}" for name in ("dtype", "max_tokens")),
    *(
        f"reward.{name}"
        for name in ("fn", "weights", "options", "score_key", "group", "timeout_s", "retries", "concurrency")
    ),
    "prompts.max_tokens",
    *(
        f"algo.{name}"
        for name in (
            "advantage",
            "normalize_std",
            "gamma",
            "kl_coef",
            "kl_type",
            "whiten",
            "mask_truncated",
            "policy_loss",
            "old",
            "clip_low",
            "clip_high",
            "dual_clip",
            "kl_loss_coef",
            "kl_loss_type",
            "kl_unbiased",
            "entropy_coef",
            "opsm_delta",
        )
    ),
    *(
        f"algo.correction.{name}"
        for name in (
            "type",
            "level",
            "low",
            "high",
            "normalize",
            "reject",
            "reject_low",
            "reject_high",
            "veto",
        )
    ),
)
"""Keys of what an engine draws and a policy gradient makes of it."""
_REWARD_MODEL = tuple(f"algo.reward_model.{name}" for name in ("centering", "margin_field", "per_token"))
_ROWS = tuple(f"prompts.rows.{name}" for name in ("turns", "max_tokens", "on_long"))
IDLE = (
    Idle(_PLAYED, _OBJECTIVE, is_offline),
    Idle(("algo.aggregation",), _OBJECTIVE, _unless("reward", "nll")),
    Idle(_ROWS, _OBJECTIVE, _unless(*SHAPES)),
    Idle(("prompts.rows.messages_key",), _OBJECTIVE, _unless("nll")),
    Idle(("prompts.rows.response_key",), _OBJECTIVE, _unless("nll", "kto", "regression")),
    Idle(("prompts.rows.ranked_key",), _OBJECTIVE, _unless("plackett_luce")),
    Idle(("prompts.rows.turns",), _OBJECTIVE, is_scoring),
    Idle(_REWARD_MODEL, _OBJECTIVE, _unless("bradley_terry")),
    Idle(("algo.reward_model.margin_field",), "algo.reward_model.per_token", _compares_tokens),
    Idle(("prompts.rows.chosen_key", "prompts.rows.rejected_key"), _OBJECTIVE, _unless(*_PAIRS)),
    Idle(("algo.preference.beta",), _OBJECTIVE, _unless(*NEEDS_REFERENCE, "simpo", "cpo")),
    Idle(("algo.preference.label_smoothing",), _OBJECTIVE, _unless("dpo", "robust_dpo")),
    Idle(("algo.preference.mean_logp",), _OBJECTIVE, _unless("ipo")),
    Idle(("algo.preference.target_margin",), _OBJECTIVE, _unless("simpo")),
    Idle(("algo.preference.odds_weight",), _OBJECTIVE, _unless("orpo")),
    Idle(
        ("algo.preference.nll_weight",),
        _OBJECTIVE,
        lambda c: c.algo.objective not in _PREFERENCES or c.algo.objective == "orpo",
    ),
    Idle(
        ("algo.preference.desirable_weight", "algo.preference.undesirable_weight"), _OBJECTIVE, _unless("kto")
    ),
)
