"""Chat templates that treat some messages otherwise than others, for conversations over several turns."""

_OPENING = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

CALLS = (
    "{% for m in messages %}{% if m.role == 'tool' %}"
    "{% if messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user\n' }}{% endif %}"
    "{{ '<result>' + m.content + '</result>' }}"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}"
    "{% else %}{{ '<|im_start|>' + m.role + '\n' + (m.content or '') }}"
    "{% for call in m.tool_calls or [] %}{{ '<call>' + call.name + ' ' + call.arguments + '</call>' }}"
    f"{{% endfor %}}{{{{ '<|im_end|>\n' }}}}{{% endif %}}{{% endfor %}}{_OPENING}"
)
"""Shows calls of tools, and tools' messages in a row as one turn of the user."""

THINKING = (
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
    "{% set thought = m.content.split('</think>')[0] if '</think>' in m.content else '' %}"
    "{% if loop.index0 > ns.last %}{{ '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}{% endif %}"
    "{{ m.content.split('</think>')[-1].lstrip('\n') }}{% else %}{{ m.content }}{% endif %}"
    f"{{{{ '<|im_end|>\n' }}}}{{% endfor %}}{_OPENING}"
)
"""Shows a thought, be it empty, around replies behind the last question, and none around earlier ones."""
