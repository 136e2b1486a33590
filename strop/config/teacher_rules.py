"""What must hold between the keys of a teacher and others, and which of them do nothing."""

from collections.abc import Callable, Iterator

from strop.config.algo_rules import BUILT_IN_LOSSES
from strop.config.hub_names import as_hub_name
from strop.config.idle import Idle
from strop.config.teacher import POLICY
from strop.config.toml_text import shown
from strop.config.tree import Config
from strop.config.view import View

_MODEL, _SEVERAL, _HINT = "algo.teacher.model", "algo.teachers", "algo.teacher.hint_key"


def _one_or_several(view: View) -> Iterator[str]:
    if view.value(_MODEL) is not None and view.value(_SEVERAL):
        several = f"{_SEVERAL} ({view.origin(_SEVERAL)})"
        yield (
            f"{view.at(_MODEL)}: {view.said(_MODEL)} and {several} exclude each other; make it one of these "
            "tables"
        )


def _something_to_learn_from(view: View) -> Iterator[str]:
    key = "algo.advantage"
    if view.value(key) == "none" and not view.config.algo.is_taught:
        given = view.said("algo.type" if view.value("algo.type") == "opd" else key)
        yield f"{view.at('algo.type', key)}: {given} learns from a teacher alone; give {_MODEL}"


def _own_teacher_knows_more(view: View) -> Iterator[str]:
    for key in (_MODEL, *(f"{_SEVERAL}.{number}.model" for number in range(len(view.value(_SEVERAL))))):
        if view.value(key) == POLICY and view.value(_HINT) is None:
            yield (
                f"{view.at(key)}: {view.said(key)} is the policy itself, from which it learns nothing unless "
                f"it is shown more; give {_HINT}, or another model"
            )


def _sources_are_parts(view: View) -> Iterator[str]:
    parts = [part.name for part in view.config.prompts.mixture]
    for number, teacher in enumerate(view.config.algo.teachers):
        key = f"{_SEVERAL}.{number}.sources"
        strangers = [name for name in teacher.sources if name not in parts]
        if parts and strangers:
            yield (
                f"{view.at(key)}: {view.said(key)}: prompts.mixture has no part {shown(strangers[0])}; "
                f"it has {', '.join(parts)}"
            )


def _hints_go_before_rendered_prompts(view: View) -> Iterator[str]:
    generate = "rollout.generate"
    if view.value(_HINT) is not None and view.value(generate) is not None:
        yield (
            f"{view.at(_HINT)}: {view.said(_HINT)} goes before a prompt that strop renders, but "
            f"{view.said(generate)} renders its own; remove one"
        )


def _trained_into_a_directory(view: View) -> Iterator[str]:
    key, name = "algo.teacher.train_first", view.value(_MODEL)
    if view.value(key) is not None and name == POLICY:
        yield (
            f"{view.at(_MODEL)}: {view.said(_MODEL)} is the policy itself, but {view.said(key)} makes a "
            f'directory, from which nobody would learn; remove one, or write "./{name}"'
        )
    elif view.value(key) is not None and name is not None and ("/" not in name or as_hub_name(name)):
        whose = "a name of the Hub" if "/" in name else "the name of a model"
        yield (
            f"{view.at(_MODEL)}: {view.said(_MODEL)} reads as {whose}, but {view.said(key)} makes "
            f'a directory; write "./{name}"'
        )


RULES: tuple[Callable[[View], Iterator[str]], ...] = (
    _one_or_several,
    _something_to_learn_from,
    _own_teacher_knows_more,
    _sources_are_parts,
    _hints_go_before_rendered_prompts,
    _trained_into_a_directory,
)


def _only_by_divergence(config: Config) -> bool:
    """Every advantage is 0, and with it the policy loss."""
    algo = config.algo
    is_nothing_worth = algo.advantage == "none" and algo.kl_coef == 0
    return is_nothing_worth and algo.policy_loss in BUILT_IN_LOSSES and algo.teacher.form != "sampled"


_OF_ALL = tuple(f"algo.teacher.{name}" for name in ("coef", "form", "top_k", "beta", "hint_key"))
_OF_ADVANTAGES = tuple(
    f"algo.{name}"
    for name in (
        "whiten",
        "policy_loss",
        "clip_low",
        "clip_high",
        "dual_clip",
        "opsm_delta",
        "correction.type",
        "correction.reject",
        "correction.veto",
    )
)
IDLE = (
    Idle((_MODEL, _SEVERAL), "algo.objective", lambda c: c.algo.objective != "reward"),
    Idle(_OF_ALL, _MODEL, lambda c: not c.algo.is_taught),
    Idle(("algo.teacher.train_first",), _MODEL, lambda c: c.algo.teacher.model is None),
    Idle(("algo.teacher.top_k",), "algo.teacher.form", lambda c: c.algo.teacher.form != "top_k"),
    Idle(("algo.teacher.beta",), "algo.teacher.form", lambda c: c.algo.teacher.form == "sampled"),
    Idle(_OF_ADVANTAGES, "algo.teacher.form", _only_by_divergence),
)
