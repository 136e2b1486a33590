"""The losses of TRL 1.16 on the same weights and the same ids: supervised, and every preference loss it has.

`make .venv-trl/.installed` makes the environment that this needs.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_model import make_chat_tokenizer

from strop.algo.batch import make_batch
from strop.algo.given import whole_loss
from strop.algo.open import open_given
from strop.config.algo import Algo
from strop.config.offline import Preference, Rows
from strop.config.tree import Train
from strop.nn.loading import load_model
from strop.nn.tiny import make_tiny
from strop.offline.rows import RowReader
from strop.offline.source import groups_of
from strop.prompts.given import make_given
from strop.prompts.given_keys import GivenKeys
from strop.prompts.rows import Keys
from strop.render.open import open_renderer
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Role, Sample
from strop.tokens import Tokens
from strop.train.local import LocalTrainer, Models

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".venv-trl" / "bin" / "python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PEER.exists(), reason="needs TRL in .venv-trl: make .venv-trl/.installed"),
]
PAIRS = [
    {"prompt": "Which is the largest", "chosen": " 52!", "rejected": " 17 or 3"},
    {"prompt": "user", "chosen": " A9?", "rejected": " system system"},
    {"prompt": "Answer with", "chosen": " XYZ", "rejected": " number"},
]
"""The chosen responses are of one length, so that a mean over tokens and one over responses are the same."""
MARKED = [
    {"prompt": pair["prompt"], "completion": pair["chosen" if good else "rejected"], "label": good}
    for pair, good in zip(PAIRS, (True, False, True), strict=True)
]
KEYS: dict[str, dict[str, float]] = {
    "robust_dpo": {"label_smoothing": 0.1},
    "cpo": {"nll_weight": 1.0},
    "simpo": {"beta": 2.0, "target_margin": 0.5},
}
OBJECTIVES = (
    "nll",
    "dpo",
    "ipo",
    "hinge",
    "nca_pair",
    "sppo_hard",
    "apo_zero",
    "robust_dpo",
    "cpo",
    "simpo",
    "orpo",
    "kto",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A policy and a reference of a text tokenizer with 264 tokens."""
    root, made = tmp_path_factory.mktemp("trl"), {}
    for seed, name in enumerate(("policy", "reference")):
        made[name] = make_tiny(root / name, seed=seed)
        (made[name] / "tokenizer_config.json").unlink()
        make_chat_tokenizer(made[name], None, vocab_size=264)
    return made


@pytest.fixture(scope="module")
def theirs(models: dict[str, Path]) -> dict[str, Any]:
    argument = {**{n: str(p) for n, p in models.items()}, "pairs": PAIRS, "marked": MARKED}
    command = [str(PEER), str(ROOT / "tests" / "trl_losses.py"), json.dumps(argument)]
    environment = {"PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def sample(index: int, role: Role, said: dict[str, list[int]], *, beside: int | None = None) -> Sample:
    mask = [bool(m) for m in said["mask"]]
    return Sample(
        index=index,
        group_id=index // 2,
        trajectory_id=index if beside is None else beside,
        remove_sample=role is Role.MISMATCHED,
        role=role.value,
        sequence=Tokens.given(said["ids"], mask),
        prompt_length=mask.index(True),
    )


def samples_of(theirs: dict[str, Any]) -> list[Sample]:
    """What TRL's batch holds, as samples of ours."""
    if "marks" in theirs:
        made = []
        for at, (good, own, other) in enumerate(
            zip(theirs["marks"], theirs["texts"], theirs["mismatched"], strict=True)
        ):
            role = Role.DESIRABLE if good else Role.UNDESIRABLE
            made += [sample(2 * at, role, own), sample(2 * at + 1, Role.MISMATCHED, other, beside=2 * at)]
        return made
    if "texts" in theirs:
        return [sample(2 * at, Role.RESPONSE, said) for at, said in enumerate(theirs["texts"])]
    pairs = zip(theirs["chosen"], theirs["rejected"], strict=True)
    return [
        sample(2 * at + place, role, said)
        for at, pair in enumerate(pairs)
        for place, (role, said) in enumerate(zip((Role.CHOSEN, Role.REJECTED), pair, strict=True))
    ]


def groups(samples: list[Sample]) -> list[Group]:
    by_id: dict[int, list[Sample]] = {}
    for each in samples:
        by_id.setdefault(each.group_id, []).append(each)
    return [Group(id, Prompt(id=str(id), messages="a"), found) for id, found in by_id.items()]


@pytest.mark.parametrize("objective", OBJECTIVES)
async def test_the_loss_is_trls(objective: Any, models: dict[str, Path], theirs: dict[str, Any]) -> None:
    algorithm = open_given(Algo(objective=objective, preference=Preference(**KEYS.get(objective, {}))))
    policy, reference = (load_model(models[name], torch.float32) for name in ("policy", "reference"))
    trainer = LocalTrainer(Models(policy, reference), Train(), algorithm, Compute(), total_updates=1)
    made = groups(samples_of(theirs[objective]))
    batch = make_batch(made, num_updates=1, max_response_tokens=9, temperature=1.0)
    for what in ("old", "ref"):
        batch.scored[what] = await trainer.score(batch, what)
    algorithm.credit(batch)
    loss, expected = whole_loss(algorithm, batch), theirs[objective]["loss"]
    ours = float(loss.total)
    if objective == "orpo":  # TRL's NLL is of the prompt as well; the paper's is of the response
        ours, expected = ours - float(loss.parts["nll"]), expected - theirs[objective]["nll"]
    assert ours == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("objective", "shape"), [("nll", "texts"), ("dpo", "pairs"), ("kto", "marked")])
def test_rows_are_the_tokens_of_trl(
    objective: str, shape: Any, models: dict[str, Path], theirs: dict[str, Any]
) -> None:
    """Ids, end of text included, and masks; of marked rows also which response a prompt is paired with."""
    rows = MARKED if shape == "marked" else PAIRS
    if shape == "texts":
        rows = [{"prompt": row["prompt"], "completion": row["chosen"]} for row in PAIRS]
    given = GivenKeys(shape, "messages", "completion", "chosen", "rejected", "ranked")
    keys = Keys(given=given, is_plain=True)
    prompts = [make_given(row, keys, id=str(at), where="row") for at, row in enumerate(rows)]
    renderer = open_renderer(models["policy"], chat_template=False)
    made = groups_of(prompts, RowReader(renderer, Rows(), 2048))

    def content(samples: list[Sample]) -> list[tuple[str, list[int], list[int]]]:
        return sorted((s.role, s.tokens, s.sequence.mask.astype(int).tolist()) for s in samples)

    assert content([s for group in made for s in group.samples]) == content(samples_of(theirs[objective]))
