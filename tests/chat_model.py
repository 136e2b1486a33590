"""A small real tokenizer with a chat template, made without network: what chat renderers are tested on."""

from pathlib import Path

TURN = "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
OPENING = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

CHATML = (
    "{% if tools %}{{ '<|im_start|>system\\n' }}{% for t in tools %}{{ t.name }} {% endfor %}"
    "{{ '<|im_end|>\\n' }}"
    f"{{% endif %}}{{% for message in messages %}}{TURN}{{% endfor %}}{OPENING}"
)
"""The separator after the end of a turn is not drawn by the model, and must not be lost."""

MISTRAL = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'assistant' %}{{ ' ' + message.content + eos_token }}"
    "{% elif message.role == 'user' %}{{ '[INST] ' + message.content + ' [/INST]' }}"
    "{% else %}{{ raise_exception('only user and assistant roles are supported') }}{% endif %}{% endfor %}"
)
"""A beginning-of-text token of its own, and no word that opens a reply but the space before it."""

LLAMA = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n\\n' + message.content|trim + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n\\n' }}{% endif %}"
)
"""A beginning-of-text token, and nothing between turns."""

FORGETFUL = (
    "{% for message in messages %}{% if loop.last or loop.first or message.role != 'user' %}"
    f"{TURN}{{% else %}}{{{{ '<|im_start|>user\\n…<|im_end|>\\n' }}}}{{% endif %}}{{% endfor %}}{OPENING}"
)
"""Rewrites an earlier turn as soon as a later one comes."""

_TEXTS = [
    "Which is the largest number: 52, 17 or 38? Answer with just the number.",
    "user assistant tool system",
]


def make_chat_tokenizer(
    directory: Path, template: str | None = CHATML, *, adds_bos: bool = False, vocab_size: int = 340
) -> Path:
    """Byte-level BPE: `<|endoftext|>` 0, `<|im_start|>` 1, `<|im_end|>` 2 (which ends a text), `<s>` 3."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        _TEXTS * 3,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=specials,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    if adds_bos:
        bpe.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 3)]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(directory)
    return directory
