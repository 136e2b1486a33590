"""Which ids of a conversation over several turns are the model's: all that it drew, and nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from chat_model import CHATML, make_chat_tokenizer
from scripted import PROMPT, finished, player_of
from templates_of_turns import CALLS, THINKING

from strop.engines.base import Completion
from strop.envs.base import Observation, Step
from strop.errors import DataError
from strop.render.open import open_renderer
from strop.sample import Prompt

IM_END = 2
GO_ON = {"role": "user", "content": "Go on."}


class Draws:
    """An engine that draws these ids, one list a request."""

    def __init__(self, *replies):
        self.replies, self.requests = list(replies), []

    async def generate(self, request):
        self.requests.append(request.ids.tolist())
        ids = np.array(self.replies.pop(0), np.int32)
        return Completion(ids, np.full(len(ids), -0.5, np.float32), np.zeros(len(ids), np.int32), "stop")


class Answers:
    """An environment that answers with these messages, one tuple a turn, and is then done."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def start(self, prompt):
        return Observation()

    async def step(self, reply):
        if not self.answers:
            return Step(Observation(), done=True, reward=1.0)
        return Step(Observation(tuple(self.answers.pop(0))), done=False)

    async def close(self):
        pass


@pytest.fixture
def renderer_of(tmp_path):
    def renderer(template=CHATML):
        return open_renderer(make_chat_tokenizer(tmp_path, template))

    return renderer


def encoded(renderer, text):
    return renderer.tokenizer(text, add_special_tokens=False)["input_ids"]


async def played(renderer, replies, answers, prompt=PROMPT):
    engine = Draws(*replies)
    player = player_of(engine, make_env=lambda: Answers(*answers), max_turns=9)
    player = replace(player, parts=replace(player.parts, renderer=renderer))
    sample = await finished(player, prompt=prompt, max_tokens=900)
    assert sample.error is None
    return sample, engine


def spans(sample):
    """The ids of each run of trained tokens, and of each run of others behind the prompt."""
    trained, others, before = [], [], None
    for id, mask in zip(sample.tokens[sample.prompt_length :], sample.loss_mask, strict=True):
        runs = trained if mask else others
        if mask != before:
            runs.append([])
        runs[-1].append(id)
        before = mask
    return trained, others


async def test_six_turns_of_the_user_keep_all_six_spans_of_the_assistant(renderer_of):
    renderer = renderer_of()
    replies = [[*encoded(renderer, f"reply {n}"), IM_END] for n in range(6)]
    answers = [[{"role": "user", "content": f"question {n}"}] for n in range(1, 6)]
    sample, _ = await played(renderer, replies, answers)
    trained, others = spans(sample)
    assert trained == replies
    asked = "\n<|im_start|>user\nquestion {}<|im_end|>\n<|im_start|>assistant\n"
    assert others == [encoded(renderer, asked.format(n)) for n in range(1, 6)]
    conversation = [{"role": "user", "content": PROMPT.messages}]
    for n, answer in enumerate([*answers, []]):
        conversation += [{"role": "assistant", "content": f"reply {n}"}, *answer]
    assert renderer.tokenizer.decode(sample.tokens) + "\n" == renderer.text(conversation, speaks_next=False)


async def test_tool_messages_in_a_row_become_what_the_template_makes_of_them_together(renderer_of):
    renderer = renderer_of(CALLS)
    replies = [[*encoded(renderer, text), IM_END] for text in ("two calls", "42 and 43")]
    results = [{"role": "tool", "content": "= 42"}, {"role": "tool", "content": "= 43"}]
    sample, _ = await played(renderer, replies, [results])
    trained, others = spans(sample)
    assert trained == replies
    joined = "\n<|im_start|>user\n<result>= 42</result><result>= 43</result><|im_end|>\n"
    assert others == [encoded(renderer, f"{joined}<|im_start|>assistant\n")]


async def test_ids_that_no_tokenizer_would_make_of_their_text_stay_as_drawn(renderer_of):
    """TRL#5242, TRL#5330: the tool loop tokenised the text of replies anew."""
    renderer = renderer_of()
    one_by_one = [*(encoded(renderer, letter)[0] for letter in "number"), IM_END]
    assert one_by_one[:-1] != encoded(renderer, "number")
    sample, engine = await played(renderer, [one_by_one, [*encoded(renderer, "52"), IM_END]], [[GO_ON]])
    assert spans(sample)[0][0] == one_by_one
    begun = renderer.prompt(PROMPT)
    assert engine.requests[1][: len(begun) + len(one_by_one)] == begun + one_by_one
    assert sample.response == "number\nuser\nGo on.\nassistant\n52"


@pytest.mark.parametrize("said", ["a thought\n</think>\n\n52", "<think>\na thought\n</think>\n\n52", "52"])
async def test_thoughts_are_neither_dropped_nor_wrapped_when_the_conversation_goes_on(renderer_of, said):
    """TRL#6363: a reply with `</think>` alone got an empty thought; verl#6854: earlier thoughts were lost."""
    renderer = renderer_of(THINKING)
    replies = [[*encoded(renderer, said), IM_END] for _ in range(3)]
    sample, engine = await played(renderer, replies, [[GO_ON], [GO_ON]])
    trained, others = spans(sample)
    assert trained == replies
    asked = encoded(renderer, "\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n")
    assert others == [asked, asked]
    assert engine.requests[2] == sample.tokens[: len(engine.requests[2])]


def test_calls_of_tools_in_a_prompt_are_rendered_and_stay_when_it_goes_on(renderer_of):
    """verl#3960: `tool_calls` were cleared before the conversation was rendered again."""
    renderer = renderer_of(CALLS)
    call = {"role": "assistant", "content": None, "tool_calls": [{"name": "add", "arguments": "1 1"}]}
    messages = ({"role": "user", "content": "1 + 1?"}, call, {"role": "tool", "content": "2"})
    ids = renderer.prompt(Prompt(id="p", messages=messages))
    assert "<call>add 1 1</call>" in renderer.tokenizer.decode(ids)
    assert renderer.follow_up(list(messages), [GO_ON], last_id=IM_END) == encoded(
        renderer, "\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert messages[1]["tool_calls"]


def test_what_a_tokenizer_would_merge_with_a_reply_is_refused_in_words(tmp_path):
    directory = make_chat_tokenizer(tmp_path, "{% for m in messages %}{{ m.content + 'ab' }}{% endfor %}")
    file = directory / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["vocab"]["ya"] = 400
    tokenizer["model"]["merges"].insert(0, ["y", "a"])
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(
        DataError, match=r"'ab.* behind a reply, where the tokenizer merges it with the reply"
    ):
        open_renderer(directory).follow_up([GO_ON], [GO_ON], last_id=100)
