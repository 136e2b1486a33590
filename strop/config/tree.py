"""Every key of a run, with its default and its help; read top to bottom it is the reference page.

A component receives its own section, never the root. What follows from the keys is computed once, in
`runtime/plan.py`; what must hold between keys is in `config/rules.py`.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from strop.config.algo import Algo
from strop.config.keys import Section, key
from strop.config.offline import Rows

Dtype = Literal["float32", "bfloat16"]
Options = dict[str, Any]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
TokenId = Annotated[int, Field(ge=0)]
Beta = Annotated[float, Field(ge=0, lt=1)]


class Part(Section):
    """One source of a mixture of prompts."""

    name: Name = key()
    """Of the part: it goes into ids and into `metadata.source_name`."""
    weight: float = key(1.0, gt=0)
    """Share of the prompts drawn from it, relative to the other parts."""
    files: list[Text] = key(list, path="file")
    """As `prompts.files`."""
    source: Text | None = key(None, path="plugin")
    """As `prompts.source`."""
    options: Options = key(dict)
    """Keyword arguments of `source`."""
    input_key: Text | None = key(None)
    """Unset: `prompts.input_key`."""
    label_key: Text | None = key(None)
    """Unset: `prompts.label_key`."""
    reward: Text | None = key(None, path="plugin")
    """Scores this part's samples instead of `reward.fn`."""


class Prompts(Section):
    """Where tasks come from: files of rows, a procedural source, or a mixture; one of the three."""

    files: list[Text] = key(list, slime="--prompt-data", path="file")
    """JSONL (also .gz) and Parquet files, directories of Parquet shards or that `datasets` saved, in order;
    `path@[a:b]` takes a slice. May begin with a variable of the environment: `${DATA}/train.jsonl`."""
    mixture: list[Part] = key(list)
    """`[[prompts.mixture]]` tables: prompts are drawn from several parts by weight."""
    source: Text | None = key(None, path="plugin")
    """A function `(rng, **options) -> {"prompt": …, "label": …}` that makes a task: `file.py:name`.
    slime: --data-source-path."""
    options: Options = key(dict)
    """Keyword arguments of `source`. slime: --buffer-filter-path."""
    input_key: Text = key("prompt", slime="--input-key")
    """Field of a row that holds the prompt: text, or a list of chat messages."""
    label_key: Text = key("label", slime="--label-key")
    """Field of a row that holds what the reward compares with."""
    metadata_key: Text = key("metadata", slime="--metadata-key")
    """Field of a row that holds a table of further facts; may be absent. Of these, `rm_type` names the reward
    of the row and `max_response_tokens` lowers its budget."""
    metadata_fields: list[Text] = key(list)
    """Further fields of a row to put into its metadata, each under its own name."""
    tool_key: Text = key("tools", slime="--tool-key")
    """Field of a row that holds tool descriptions for the chat template; may be absent."""
    template: Text | None = key(None)
    """Text in which `{prompt}` stands for the text of a row, of training and held-out files."""
    chat_template: bool = key(True, slime="--apply-chat-template")
    """Render prompts with the model's chat template; text becomes one user message. false: text as it is."""
    chat_template_kwargs: Options = key(dict, slime="--apply-chat-template-kwargs")
    """Keyword arguments of the chat template, e.g. `{ enable_thinking = false }`."""
    max_tokens: int | None = key(None, slime="--rollout-max-prompt-len", ge=1)
    """Rows whose prompts are longer than this are left out, and counted."""
    on_bad_row: Literal["stop", "skip"] = key("stop")
    """What a malformed row does, or one that the chat template refuses: it is an error before the run begins,
    or is left out and counted. Of a held-out set it always is an error."""
    rows: Rows = key(Rows)
    shuffle: bool = key(True)
    """A new order in each epoch, from `seed` and the epoch alone. slime: --rollout-shuffle."""
    seed: int = key(42, slime="--rollout-seed", ge=0)
    """Of the order, and of procedural tasks."""


class Env(Section):
    """What answers the model."""

    type: Text = key("single_turn", path="plugin")
    """`single_turn`, `calculator`, or `file.py:Name` of an Environment."""
    options: Options = key(dict)
    """Keyword arguments of the environment."""
    max_turns: int = key(8, slime="--max-turns", ge=1)
    """Replies of the model at most; then the episode ends as truncated."""
    timeout_s: float = key(60.0, gt=0)
    """For one call into the environment."""


class Engine(Section):
    """What turns tokens into tokens."""

    backend: Literal["local"] = key("local")
    """`local`: in this process, on torch."""
    dtype: Dtype = key("float32")
    """Of weights, activations and KV cache. In float32 the weights are the trainer's own, else a copy."""
    max_tokens: int = key(16384, ge=64)
    """Size of the KV cache in tokens: of prompts in use, each counted as the longest, and of what each
    sequence that is decoded may draw."""


class Rollout(Section):
    """How many samples a step takes, and how they are drawn."""

    batch_size: int = key(8, slime="--rollout-batch-size", ge=1)
    """Prompts (groups) a step."""
    samples_per_prompt: int = key(8, slime="--n-samples-per-prompt", ge=1)
    """Samples of one prompt: a group."""
    max_response_tokens: int = key(256, slime="--rollout-max-response-len", ge=1)
    """Tokens after the prompt at most, over all turns, tool tokens included."""
    temperature: float = key(1.0, slime="--rollout-temperature", gt=0)
    """Also divides the trainer's logits, so that both sides speak of one distribution."""
    top_p: float = key(1.0, slime="--rollout-top-p", gt=0, le=1)
    """Draw from the smallest set of likeliest tokens that holds this probability. The set is kept with each
    token, and the trainer's log-probs are of the same set."""
    top_k: int = key(-1, slime="--rollout-top-k", ge=-1)
    """Draw from this many likeliest tokens; −1: from all."""
    min_p: float = key(0.0, ge=0, lt=1)
    """Leave out tokens that are less likely than this times the likeliest."""
    max_context_tokens: int | None = key(None, slime="--rollout-max-context-len", ge=2)
    """Prompt and response together at most: a long prompt lowers the budget of its response."""
    stop: list[Text] = key(list, slime="--rollout-stop")
    """Texts that end a reply once they are in it; the tokens that made them stay, and are trained."""
    stop_token_ids: list[TokenId] = key(list, slime="--rollout-stop-token-ids")
    """Ids that end a reply, beside the model's own end-of-turn ids."""
    ignore_eos: bool = key(False)
    """Do not end a reply at the model's own end-of-turn ids: for measuring speed at a fixed length."""
    over_sample: int = key(0, ge=0)
    """Groups started beyond `batch_size` in the first round; surplus groups are dropped by name.
    slime: --over-sampling-batch-size, which counts from 0."""
    keep: Text | None = key(None, slime="--dynamic-sampling-filter-path", path="plugin")
    """Which groups are trained: `reward_std` (rewards that differ, as in DAPO), `reward_std_or_fill` (others
    too, once `max_tries` rounds were not enough), `all` or `file.py:name`."""
    max_tries: int = key(20, ge=1)
    """Rounds of replacing dropped groups before the run stops and says that there is nothing to learn."""
    generate: Text | None = key(None, path="plugin")
    """A function `async (prompt, ctx) -> list[Sample]` that replaces the whole episode.
    slime: --custom-generate-function-path."""
    hooks: list[Text] = key(list, path="plugin")
    """Functions `(sample) -> None`, each called with every finished sample before it is rewarded.
    slime: --rollout-sample-hook-path, --rollout-sample-filter-path, --rollout-all-samples-process-path."""


class Reward(Section):
    """What a sample is worth."""

    fn: Text = key("exact", slime="--rm-type", path="plugin")
    """The name of a built-in reward (see the reference), or `file.py:name` of a function of the sample.
    slime: --custom-rm-path."""
    weights: dict[str, float] = key(dict, path="plugin")
    """Several rewards and their weights, instead of `fn`: `{ math = 1.0, format = 0.2 }`. The weighted sum is
    trained on; each is recorded by its name."""
    options: Options = key(dict, path="plugin")
    """Keyword arguments of the reward; with `weights`, one table of them for each name."""
    score_key: Text | None = key(None, slime="--reward-key")
    """For a reward that returns a table of scores: the one to train on; the others are recorded."""
    group: bool = key(False)
    """The function is called once with all samples of a group and returns a list, in their order.
    slime: --group-rm."""
    timeout_s: float = key(30.0, gt=0)
    """For one call; a call that takes longer is retried, then its group is dropped and counted."""
    retries: int = key(2, ge=0)
    """Further calls after a failure."""
    concurrency: int = key(64, ge=1)
    """Calls at once."""


class Buffer(Section):
    """Finished groups between rollout and training."""

    staleness: int = key(0, ge=0)
    """Versions that may lie between sampling and training; 0 is synchronous."""


class Optim(Section):
    """AdamW on float32 master weights."""

    lr: float = key(1e-6, slime="--lr", ge=0)
    """Peak learning rate."""
    betas: tuple[Beta, Beta] = key((0.9, 0.98))
    """slime: --adam-beta1, --adam-beta2."""
    eps: float = key(1e-8, slime="--adam-eps", gt=0)
    """Added to the root of the second moment."""
    weight_decay: float = key(0.0, slime="--weight-decay", ge=0)
    """On matrices only; norms and biases are not decayed."""
    clip: float = key(1.0, slime="--clip-grad", gt=0)
    """Largest gradient norm."""
    schedule: Literal["constant", "linear", "cosine"] = key("constant", slime="--lr-decay-style")
    """Course of the learning rate after warm-up, over `loop.steps`; the last two end at 0."""
    warmup: int = key(0, slime="--lr-warmup-iters", ge=0)
    """Updates of linear warm-up."""


class Lora(Section):
    """Low-rank adapters (arXiv:2106.09685): the model's own weights stay as they are."""

    rank: int = key(0, ge=0)
    """Of the adapters; 0 trains the whole model."""
    alpha: int = key(32, ge=1)
    """The adapter's product is scaled by alpha / rank."""
    targets: list[Text] = key(lambda: ["all-linear"], min_length=1)
    """Names of the layers that get one, e.g. `q_proj`; `all-linear`: every linear layer but the head."""


class Train(Section):
    """How a batch becomes an update."""

    backend: Literal["local"] = key("local")
    """`local`: in this process, on torch."""
    batch_size: int | None = key(None, slime="--global-batch-size", ge=1)
    """Samples (trajectories) an update. Unset, it follows from the batch identity:
    rollout.batch_size × samples_per_prompt = batch_size × updates_per_step."""
    updates_per_step: int = key(1, slime="--num-steps-per-rollout", ge=1)
    """Optimizer updates a step."""
    max_tokens_per_device: int = key(4096, slime="--max-tokens-per-gpu", ge=1)
    """Token budget of a micro-batch; changes memory and speed, never the result."""
    dtype: Dtype = key("float32")
    """Of the computation; master weights and optimizer stay float32."""
    on_nan: Literal["stop", "skip"] = key("stop")
    """When a loss or gradient is not finite: end the run, or skip the update and count it."""
    optim: Optim = key(Optim)
    lora: Lora = key(Lora)


class Sync(Section):
    """How new weights reach the engine."""

    transport: Literal["share"] = key("share")
    """`share`: in one process; nothing moves where `engine.dtype` is float32, else the engine copies."""


class EvalSet(Section):
    """One held-out data set. What is unset is as in training, but for the temperature."""

    name: Name = key()
    """Of its figures: `eval.<name>` in metrics and summary."""
    files: list[Text] = key(list, path="file")
    """As `prompts.files`."""
    source: Text | None = key(None, path="plugin")
    """A procedural source, as in `prompts.source`."""
    options: Options = key(dict)
    """Keyword arguments of `source`."""
    n: int | None = key(None, ge=1)
    """Prompts to take from the start; needed with `source`, all rows when unset."""
    input_key: Text | None = key(None)
    """Unset: `prompts.input_key`. slime: --eval-input-key."""
    label_key: Text | None = key(None)
    """Unset: `prompts.label_key`. slime: --eval-label-key."""
    tool_key: Text | None = key(None)
    """Unset: `prompts.tool_key`. slime: --eval-tool-key."""
    reward: Text | None = key(None, path="plugin")
    """Scores this set instead of the run's reward: a name, or `file.py:name`."""
    samples_per_prompt: int = key(1, ge=1)
    """Samples of each prompt; the mean is over all, and pass@k is told for k up to it.
    slime: --n-samples-per-eval-prompt."""
    pass_threshold: float = key(1.0)
    """A sample passes, for pass@k, when its reward is at least this."""
    temperature: float = key(0.0, ge=0)
    """0 is greedy. slime: --eval-temperature."""
    top_p: float | None = key(None, gt=0, le=1)
    """Unset: `rollout.top_p`. slime: --eval-top-p."""
    top_k: int | None = key(None, ge=-1)
    """Unset: `rollout.top_k`. slime: --eval-top-k."""
    min_p: float | None = key(None, ge=0, lt=1)
    """Unset: `rollout.min_p`."""
    max_response_tokens: int | None = key(None, ge=1)
    """Unset: `rollout.max_response_tokens`. slime: --eval-max-response-len."""
    stop: list[Text] | None = key(None)
    """Unset: `rollout.stop`."""


class Eval(Section):
    """The same rollout on held-out prompts, at the start, every n steps, and at the end."""

    every: int = key(0, slime="--eval-interval", ge=0)
    """Steps between evaluations; 0: at the start and the end only."""
    datasets: list[EvalSet] = key(list)
    """`[[eval.datasets]]` tables. slime: --eval-prompt-data NAME PATH … or --eval-config FILE"""


class Store(Section):
    """The run directory and its checkpoints."""

    dir: Text | None = key(None)
    """Where the run goes; must not exist unless --resume. Unset: runs/<name>-<time>."""
    checkpoint_every: int = key(0, slime="--save-interval", ge=0)
    """Steps between checkpoints; 0: at the end only."""
    keep: int = key(1, ge=1)
    """Checkpoints to keep."""


class Runtime(Section):
    """Where the parts run."""

    backend: Literal["embedded"] = key("embedded")
    """`embedded`: one process on this machine."""
    threads: int | None = key(None, ge=1)
    """Compute threads; unset: the cores that this process may use."""


class Wandb(Section):
    """Weights & Biases; needs strop[wandb]."""

    project: Text = key("strop", slime="--wandb-project")
    """Project that the run appears in."""
    group: Text | None = key(None, slime="--wandb-group")
    """Group of runs that it belongs to."""
    entity: Text | None = key(None, slime="--wandb-team")
    """Team or user; unset: the account's own."""
    mode: Literal["offline", "online"] = key("offline", slime="--wandb-mode")
    """`offline`: files in the run directory, for `wandb sync`."""


class Telemetry(Section):
    """What is shown while it runs; metrics.jsonl is always written."""

    sinks: list[Literal["console", "tensorboard", "wandb"]] = key(lambda: ["console"])
    """`console`: live in a terminal, plain lines elsewhere. `tensorboard` and `wandb` write into the run
    directory. slime: --use-tensorboard, --use-wandb."""
    wandb: Wandb = key(Wandb)
    show_sample_every: int = key(5, ge=0)
    """Steps between samples shown on the console; 0: never."""


class Loop(Section):
    """How long, and from which seed."""

    steps: int = key(slime="--num-rollout", ge=0)
    """Passes of the loop."""
    seed: int = key(0, slime="--seed", ge=0)
    """Of everything random in the run, except data order (`prompts.seed`)."""


class Config(Section):
    """A run: `strop train RUN.toml [--section.key value …]`."""

    name: Name = key("run")
    """Of the run; part of the default run directory."""
    model: Text = key(slime="--hf-checkpoint", path="model")
    """`tiny`, `smollm2-135m`, a directory with a model and its tokenizer, or `org/name` (with `@revision` if
    need be) of the Hugging Face Hub."""
    prompts: Prompts = key(Prompts)
    env: Env = key(Env)
    engine: Engine = key(Engine)
    rollout: Rollout = key(Rollout)
    reward: Reward = key(Reward)
    buffer: Buffer = key(Buffer)
    algo: Algo = key(Algo)
    train: Train = key(Train)
    sync: Sync = key(Sync)
    eval: Eval = key(Eval)
    store: Store = key(Store)
    runtime: Runtime = key(Runtime)
    telemetry: Telemetry = key(Telemetry)
    loop: Loop
