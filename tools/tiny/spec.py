# SPDX-License-Identifier: Apache-2.0
"""What the demo model is: its dimensions, its special tokens, its file names."""

from __future__ import annotations

from dataclasses import dataclass

VOCAB_ROWS = 4096  # rows of the embedding; the tokenizer has a few ids fewer, the rest is padding
PADDING_ROWS = 10
WINDOW = 512  # tokens in one validation window

# (text, special flag), in the order of Qwen3.5's added tokens. The audio tokens are left out.
ADDED_TOKENS: list[tuple[str, bool]] = [
    ("<|endoftext|>", True),
    ("<|im_start|>", True),
    ("<|im_end|>", True),
    ("<|object_ref_start|>", True),
    ("<|object_ref_end|>", True),
    ("<|box_start|>", True),
    ("<|box_end|>", True),
    ("<|quad_start|>", True),
    ("<|quad_end|>", True),
    ("<|vision_start|>", True),
    ("<|vision_end|>", True),
    ("<|vision_pad|>", True),
    ("<|image_pad|>", True),
    ("<|video_pad|>", True),
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<|fim_prefix|>", False),
    ("<|fim_middle|>", False),
    ("<|fim_suffix|>", False),
    ("<|fim_pad|>", False),
    ("<|repo_name|>", False),
    ("<|file_sep|>", False),
    ("<tool_response>", False),
    ("</tool_response>", False),
    ("<think>", False),
    ("</think>", False),
]
BASE_IDS = VOCAB_ROWS - PADDING_ROWS - len(ADDED_TOKENS)  # byte symbols and merges

END_OF_TEXT = "<|endoftext|>"
IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
NO_THINKING = "<think>\n\n</think>\n\n"


def added_id(text: str) -> int:
    """The id of an added token."""
    return BASE_IDS + [name for name, _ in ADDED_TOKENS].index(text)


@dataclass(frozen=True)
class ModelSpec:
    """Dimensions of a Qwen3.5-MoE text model; the defaults are the demo model's."""

    vocab: int = VOCAB_ROWS
    hidden: int = 256
    layers: int = 8
    full_interval: int = 4
    q_heads: int = 2
    kv_heads: int = 1
    head_dim: int = 256
    rotary_dim: int = 64
    rope_theta: float = 1e7
    gdn_k_heads: int = 2
    gdn_v_heads: int = 4
    gdn_dim: int = 128
    conv_kernel: int = 4
    experts: int = 8
    experts_active: int = 2
    moe_inner: int = 128
    shared_inner: int = 128
    eps: float = 1e-6
    max_positions: int = 2048

    def is_full(self, layer: int) -> bool:
        """True if a layer has softmax attention, false if it is a gated DeltaNet."""
        return (layer + 1) % self.full_interval == 0

    @property
    def key_dim(self) -> int:
        return self.gdn_k_heads * self.gdn_dim

    @property
    def value_dim(self) -> int:
        return self.gdn_v_heads * self.gdn_dim

    @property
    def conv_dim(self) -> int:
        return 2 * self.key_dim + self.value_dim


@dataclass(frozen=True)
class TrainSpec:
    """Settings of the optimisers, the schedule and the regularisation."""

    seconds: float
    muon_lr: float = 0.02
    adam_lr: float = 3e-3
    muon_decay: float = 0.1
    adam_decay: float = 0.1
    dropout: float = 0.05  # of what each layer adds
    edge_dropout: float = 0.1  # of the embeddings and of the last hidden state
    warmup_steps: int = 100
    flat_part: float = 0.4  # share of the time at the full rate; then linear to zero
    ema: float = 0.997
    balance: float = 0.01  # load-balance loss of the router
    z_loss: float = 1e-4
    batch: int = 32
    length: int = 1024
    seed: int = 1
