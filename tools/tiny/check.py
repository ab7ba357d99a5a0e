# SPDX-License-Identifier: Apache-2.0
"""Checks of this folder's code against independent references, on the CPU.

    python check.py TOKENIZER_FOLDER CORPUS_FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from corpus import Turn, chat_text, read_documents, split_kinds
from delta import gated_delta_rule, l2_normalise, unit_lower_inverse
from export import rounded, write_checkpoint
from model import Network, init_weights
from spec import ModelSpec


def stepwise_delta(q, k, v, log_decay, beta):
    """The recurrence, one token after another, in float64."""
    repeat = v.shape[2] // k.shape[2]
    q = l2_normalise(q).double().repeat_interleave(repeat, 2) * q.shape[-1] ** -0.5
    k, v = l2_normalise(k).double().repeat_interleave(repeat, 2), v.double()
    state = torch.zeros(v.shape[0], v.shape[2], v.shape[3], k.shape[3], dtype=torch.float64)
    outputs = []
    for t in range(v.shape[1]):
        state = state * log_decay[:, t, :, None, None].double().exp()
        error = v[:, t] - torch.einsum("bhvk,bhk->bhv", state, k[:, t])
        state = state + torch.einsum("bh,bhv,bhk->bhvk", beta[:, t].double(), error, k[:, t])
        outputs.append(torch.einsum("bhvk,bhk->bhv", state, q[:, t]))
    return torch.stack(outputs, 1)


def check_delta() -> None:
    """Chunked outputs and gradients against the stepwise recurrence; correlated keys and strong writes."""
    torch.manual_seed(0)
    shape, heads = (2, 192), (2, 4)
    q, k = torch.randn(*shape, heads[0], 128), torch.randn(*shape, heads[0], 128) + 1.0
    v = torch.randn(*shape, heads[1], 128)
    log_decay, beta = -torch.rand(*shape, heads[1]) * 0.2, torch.rand(*shape, heads[1])
    inputs = [x.requires_grad_() for x in (q, k, v, log_decay, beta)]
    weight = torch.randn(*shape, heads[1], 128)
    results = []
    for function in (gated_delta_rule, stepwise_delta):
        out = function(*inputs)
        grads = torch.autograd.grad((out * weight).sum(), inputs)
        results.append([out.detach().double(), *(grad.double() for grad in grads)])
    for name, ours, exact in zip(["output", "dq", "dk", "dv", "dg", "dbeta"], *results):
        error = ((ours - exact).norm() / exact.norm()).item()
        print(f"delta rule {name}: relative error {error:.1e}")
        assert error < 1e-4


def check_inverse() -> None:
    lower = torch.rand(3, 64, 64, dtype=torch.float64).tril(-1)
    error = (unit_lower_inverse(lower) @ (lower + torch.eye(64)) - torch.eye(64)).abs().max().item()
    print(f"triangular inverse: residual {error:.1e}")
    assert error < 1e-6


def check_model() -> None:
    """An exported random checkpoint read by transformers gives our logits."""
    spec = ModelSpec()
    torch.manual_seed(0)
    weights = rounded({name: value + 0.05 * torch.randn_like(value) for name, value in init_weights(spec, 3).items()})
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(weights, spec, Path(folder))
        theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(0, spec.vocab, (2, 200))
    with torch.no_grad():
        ours, exact = Network(spec, torch.float32).logits(weights, ids), theirs(ids).logits
    error = (ours - exact).abs().max().item()
    print(f"{type(theirs).__name__}: {sum(p.numel() for p in theirs.parameters())} parameters, "
          f"largest logit {exact.abs().max():.2f}, largest difference {error:.1e}")
    assert error < 1e-4


def check_template(folder: str, corpus: Path) -> None:
    """The chat template renders what the model is trained on."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    _, turns = split_kinds(read_documents(corpus / "valid.txt.xz"))
    for system, group in [(None, turns[:1]), (None, turns[1:4]), ("Be brief.", turns[4:6])]:
        messages = [{"role": "system", "content": system}] if system else []
        for turn in group:
            messages += [{"role": "user", "content": turn.question}, {"role": "assistant", "content": turn.answer}]
        expected = chat_text(group, system)
        assert tokenizer.apply_chat_template(messages, tokenize=False) == expected
        prompt = tokenizer.apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
        assert expected == prompt + group[-1].answer + "<|im_end|>\n"
        ids = tokenizer(expected, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=False) == expected
    print("chat template: as trained")
    print(tokenizer.apply_chat_template(
        [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"},
         {"role": "assistant", "content": "A", "reasoning_content": "R", "tool_calls": [
             {"function": {"name": "f", "arguments": {"x": "1", "y": [2]}}}, {"function": {"name": "g", "arguments": {}}}]},
         {"role": "tool", "content": "T1"}, {"role": "tool", "content": "T2"}],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}], tokenize=False,
        add_generation_prompt=True, enable_thinking=True))


def main() -> None:
    check_inverse()
    check_delta()
    check_model()
    check_template(sys.argv[1], Path(sys.argv[2]))


if __name__ == "__main__":
    main()
