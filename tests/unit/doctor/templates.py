"""Chat templates that behave like those of well-known families, written for the tests, with tokenizers."""

from pathlib import Path

_TURN = "'<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n'"
_OPENING = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

CHATML = (
    "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}"
    f"{{% for m in messages %}}{{{{ {_TURN} }}}}{{% endfor %}}{_OPENING}"
)
"""A system prompt that nobody gave, and a line end behind each turn."""

MARKED = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\n' }}"
    "{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}"
    f"{{% else %}}{{{{ {_TURN} }}}}{{% endif %}}{{% endfor %}}{_OPENING}"
)
"""Marks what the assistant says."""

THINKING = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}{% set thought = '' %}{% set said = m.content %}"
    "{% if '</think>' in m.content %}{% set thought = m.content.split('</think>')[0].split('<think>')[-1] %}"
    "{% set said = m.content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{ '<|im_start|>assistant\n' }}"
    "{% if loop.index0 > ns.last and (loop.last or thought) %}"
    "{{ '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}{% endif %}{{ said + '<|im_end|>\n' }}"
    f"{{% else %}}{{{{ {_TURN} }}}}{{% endif %}}{{% endfor %}}{_OPENING}"
)
"""Thoughts are shown of replies after the last question only; a last reply without one gets an empty one."""

OPENS_THOUGHT = CHATML.replace("'<|im_start|>assistant\n'", "'<|im_start|>assistant\n<think>\n'")
"""Opens a thought for the model, and shows earlier replies without one."""

LLAMA3 = (
    "{{ bos_token }}{{ '<|start_header_id|>system<|end_header_id|>\n\nToday is ' + "
    "(date_string or '26 Jul 2024') + '<|eot_id|>' }}"
    "{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content|trim + "
    "'<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
"""A beginning of text, a date, nothing between turns."""

GEMMA = (
    "{{ bos_token }}{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}"
    "{{ raise_exception('role not supported') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else 'user') + '\n' + m.content|trim + "
    "'<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
"""Refuses system and tool, and names the assistant otherwise."""

MISTRAL = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}"
    "{% elif m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}"
)
"""No word opens a reply, and the end of text closes it."""

PLAIN = (
    "{% for m in messages %}{{ m.role + ': ' + m.content + '\n\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""Turns that no token closes."""

SPECIALS = (
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>",
)  # fmt: skip


def make_tokenizer(
    directory: Path,
    template: str | None,
    *,
    eos: str = "<|im_end|>",
    bos: str | None = None,
    pad: str | None = None,
    adds_bos: bool = False,
) -> Path:
    """One id a byte, after the special tokens in their order."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bpe = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(list(SPECIALS))
    if adds_bos:
        begun = [("<s>", 0)]
        bpe.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=begun)
    given = {"eos_token": eos, "bos_token": bos, "pad_token": pad}
    named = {name: token for name, token in given.items() if token is not None}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, **named)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(directory)
    return directory
