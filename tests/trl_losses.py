"""Losses of TRL's own trainers on one batch: run by `test_trl_losses.py` with the Python of .venv-trl.

Reads one JSON argument: `policy`, `reference`: model directories; `pairs`, `marked`: rows. Prints one JSON
object: objective → `loss`, what else TRL says of it, and the ids and masks that it was computed on.
"""

import json
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer
from trl.experimental.cpo import CPOConfig, CPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer
from trl.trainer.kto_config import KTOConfig
from trl.trainer.kto_trainer import KTOTrainer

OF_DPO = {
    "dpo": {"loss_type": ["sigmoid"], "beta": 0.1},
    "ipo": {"loss_type": ["ipo"], "beta": 0.1},
    "hinge": {"loss_type": ["hinge"], "beta": 0.1},
    "nca_pair": {"loss_type": ["nca_pair"], "beta": 0.1},
    "sppo_hard": {"loss_type": ["sppo_hard"], "beta": 0.1},
    "apo_zero": {"loss_type": ["apo_zero"], "beta": 0.1},
    "robust_dpo": {"loss_type": ["robust"], "beta": 0.1, "label_smoothing": 0.1},
}
OF_CPO = {
    "cpo": {"loss_type": "sigmoid", "beta": 0.1, "cpo_alpha": 1.0},
    "simpo": {"loss_type": "simpo", "beta": 2.0, "simpo_gamma": 0.5, "cpo_alpha": 0.0},
}


def settings(rows: int, **own: Any) -> dict[str, Any]:
    return {
        "output_dir": tempfile.mkdtemp(),
        "per_device_train_batch_size": rows,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        "max_length": 256,
        **own,
    }


def said(ids: torch.Tensor, attended: torch.Tensor, trained: torch.Tensor) -> list[dict[str, list[int]]]:
    """The sequences of a padded batch, without padding."""
    return [
        {"ids": i[a.bool()].tolist(), "mask": t[a.bool()].long().tolist()}
        for i, a, t in zip(ids, attended, trained, strict=True)
    ]


@dataclass
class Given:
    """What is compared on."""

    policy: str
    reference: str
    pairs: list[dict[str, Any]]
    marked: list[dict[str, Any]]

    @property
    def tokenizer(self) -> Any:
        return AutoTokenizer.from_pretrained(self.policy)


def model(name: str) -> Any:
    return AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)


def first_batch(trainer: Any) -> dict[str, Any]:
    return next(iter(trainer.get_train_dataloader()))


def of_texts(given: Given) -> dict[str, Any]:
    texts = Dataset.from_list([{"prompt": p["prompt"], "completion": p["chosen"]} for p in given.pairs])
    config = SFTConfig(**settings(len(texts)))
    trainer = SFTTrainer(model(given.policy), config, train_dataset=texts, processing_class=given.tokenizer)
    inputs = first_batch(trainer)
    is_text = inputs.get("attention_mask", inputs["input_ids"] != given.tokenizer.pad_token_id)
    found = said(inputs["input_ids"], is_text, inputs["labels"] != -100)
    return {"loss": float(trainer.compute_loss(trainer.model, inputs)), "texts": found}


def of_pairs(given: Given, own: dict[str, Any]) -> dict[str, Any]:
    trainer = DPOTrainer(
        model(given.policy),
        model(given.reference),
        DPOConfig(**settings(len(given.pairs), **own)),
        train_dataset=Dataset.from_list(given.pairs),
        processing_class=given.tokenizer,
    )
    inputs = first_batch(trainer)
    both = said(inputs["input_ids"], inputs["attention_mask"], inputs["completion_mask"])
    loss, num = float(trainer.compute_loss(trainer.model, inputs)), len(given.pairs)
    return {"loss": loss, "chosen": both[:num], "rejected": both[num:]}


def without_reference(given: Given, kind: Any, config: Any, own: dict[str, Any]) -> dict[str, Any]:
    trainer = kind(
        model(given.policy),
        config(**settings(len(given.pairs), remove_unused_columns=False, **own)),
        train_dataset=Dataset.from_list(given.pairs),
        processing_class=given.tokenizer,
    )
    inputs = first_batch(trainer)
    loss, metrics = trainer.get_batch_loss_metrics(trainer.model, inputs)
    sides = {
        side: said(
            inputs[f"{side}_input_ids"], inputs[f"{side}_attention_mask"], inputs[f"{side}_labels"] != -100
        )
        for side in ("chosen", "rejected")
    }
    return {"loss": float(loss), "nll": float(metrics["nll_loss"]), **sides}


def of_marked(given: Given) -> dict[str, Any]:
    trainer = KTOTrainer(
        model(given.policy),
        model(given.reference),
        KTOConfig(**settings(len(given.marked), beta=0.1)),
        train_dataset=Dataset.from_list(given.marked),
        processing_class=given.tokenizer,
    )
    inputs = first_batch(trainer)
    columns = ("input_ids", "attention_mask", "completion_mask")
    return {
        "loss": float(trainer.compute_loss(trainer.model, dict(inputs))),
        "marks": [bool(mark) for mark in inputs["label"]],
        "texts": said(*(inputs[name] for name in columns)),
        "mismatched": said(*(inputs[f"KL_{name}"] for name in columns)),
    }


@torch.no_grad()
def main() -> None:
    given = Given(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    found = {"nll": of_texts(given), "kto": of_marked(given)}
    found |= {name: of_pairs(given, own) for name, own in OF_DPO.items()}
    found |= {name: without_reference(given, CPOTrainer, CPOConfig, own) for name, own in OF_CPO.items()}
    found["orpo"] = without_reference(given, ORPOTrainer, ORPOConfig, {"beta": 0.1})
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
