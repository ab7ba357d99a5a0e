# SPDX-License-Identifier: Apache-2.0
"""Checkpoint folders as tensors, and proof that they hold what their plan says.

`liverow synth --plan FILE` describes every tensor of a synthetic checkpoint; check_plan() makes them
again with counter_rng.py and compares the bits.
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

from counter_rng import MASK, CounterRng, bf16_bits, fnv1a64, mix64

PREFIXES = ("model.language_model.", "language_model.model.", "model.")
FP8_BLOCK = 128


def stored_tensors(folder):
    """{file name: torch tensor as stored}, of one file or of all shards."""
    folder = Path(folder)
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.exists():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    tensors = {}
    for name in names:
        with safe_open(folder / name, framework="pt") as file:
            for key in file.keys():
                tensors[key] = file.get_tensor(key)
    return tensors


def raw_bytes(tensor):
    """uint8 array: the tensor's bytes as in the file."""
    return tensor.contiguous().flatten().view(torch.uint8).numpy()


def digest(tensors):
    """64 bits over names and bytes: the sum of mix64(fnv1a64(name) ^ fnv1a64(bytes)), modulo 2^64."""
    total = 0
    for name, tensor in tensors.items():
        value = 0xCBF29CE484222325
        for byte in raw_bytes(tensor).tobytes():
            value = ((value ^ byte) * 0x100000001B3) & MASK
        key = np.array([fnv1a64(name) ^ value], dtype=np.uint64)
        total = (total + int(mix64(key)[0])) & MASK
    return f"{total:016x}"


def planned(tensor, seed):
    """uint8 array: the bytes of one plan entry (bf16 or f32), made here."""
    count = int(np.prod(tensor["shape"], dtype=np.int64))
    rng = CounterRng(tensor["stream"], seed)
    low = tensor["first"]
    # The generator's own loops start at element 0; experts start inside their stack.
    if low:
        rng.key = (rng.key + low * 0x9E3779B97F4A7C15) & MASK
    if tensor["distribution"] == "normal":
        values = rng.normal([count], tensor["b"], tensor["a"])
    else:
        values = rng.uniform([count], tensor["a"], tensor["b"])
    if tensor["dtype"] == "f32":
        return values.view(np.uint8)
    if tensor["dtype"] == "bf16":
        return bf16_bits(values).view(np.uint8)
    raise ValueError(f"{tensor['name']}: cannot make dtype {tensor['dtype']}")


def check_plan(tensors, plan):
    """Raises unless the stored tensors are, bit for bit, those of the plan."""
    expected = {entry["name"]: entry for entry in plan["tensors"]}
    if set(expected) != set(tensors):
        raise ValueError(f"plan and checkpoint differ in tensors: {set(expected) ^ set(tensors)}")
    for name, entry in expected.items():
        if list(tensors[name].shape) != entry["shape"]:
            raise ValueError(f"{name}: plan has shape {entry['shape']}, file {list(tensors[name].shape)}")
        if not np.array_equal(planned(entry, plan["seed"]), raw_bytes(tensors[name])):
            raise ValueError(f"{name}: the file's bits differ from the generator's")


SCALES = ("weight_scale", "weight_scale_inv", "weight_scale_2", "weight_global_scale", "input_scale",
          "input_global_scale", "k_scale", "v_scale")
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
NVFP4_BLOCK = 16


def _spread(scale, block, shape):
    """A scale per block of rows and columns, at every element."""
    return scale.float().repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: shape[0], : shape[1]]


def _nvfp4(codes, scale, factor):
    """Packed E2M1 [N, K/2], low nibble first; E4M3 scale [N, K/16]; decode factor."""
    values = E2M1[torch.stack([codes & 15, codes >> 4], dim=-1).flatten(-2).long()]
    return values * _spread(scale, (1, NVFP4_BLOCK), values.shape) * factor


def dequantise(name, tensors):
    """The float32 value of weight `name` ("X.weight", or "X.weight_packed"), scales taken from `tensors`."""
    base = name.removesuffix("_packed").removesuffix(".weight")
    value, scale = tensors[name], tensors.get(base + ".weight_scale")
    if name.endswith(".weight_packed"):
        return _nvfp4(value, scale, 1 / tensors[base + ".weight_global_scale"].float())
    if value.dtype == torch.uint8:
        return _nvfp4(value, scale, tensors[base + ".weight_scale_2"].float())
    if value.dtype != torch.float8_e4m3fn:
        return value.float()
    inverse = tensors.get(base + ".weight_scale_inv")
    if inverse is not None:
        return value.float() * _spread(inverse, (FP8_BLOCK, FP8_BLOCK), value.shape)
    if scale.numel() == 1 or list(scale.shape) == [value.shape[0], 1]:
        return value.float() * scale.float()
    if list(scale.shape) == [-(-value.shape[0] // FP8_BLOCK), -(-value.shape[1] // FP8_BLOCK)]:
        return value.float() * _spread(scale, (FP8_BLOCK, FP8_BLOCK), value.shape)
    raise ValueError(f"{name}: no rule for a scale {list(scale.shape)} of a weight {list(value.shape)}")


def _dequantised(tensors):
    """{name: float32 tensor}; every stored format of the family."""
    return {
        name.removesuffix("_packed"): dequantise(name, tensors)
        for name in tensors
        if name.rsplit(".", 1)[-1] not in SCALES
    }


def _canonical(name):
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return "model." + name[len(prefix) :]
    return name


def _stack_experts(tensors):
    """Experts stored one by one become the fused stacks of the BF16 release."""
    single = {}
    for name in [name for name in tensors if ".mlp.experts." in name and name.endswith("_proj.weight")]:
        scope, rest = name.split(".mlp.experts.")
        expert, projection = rest.split(".")[:2]
        single.setdefault(scope + ".mlp.experts.", {}).setdefault(int(expert), {})[projection] = tensors.pop(name)
    for scope, experts in single.items():
        rows = [experts[e] for e in range(len(experts))]
        tensors[scope + "gate_up_proj"] = torch.stack([torch.cat([r["gate_proj"], r["up_proj"]]) for r in rows])
        tensors[scope + "down_proj"] = torch.stack([r["down_proj"] for r in rows])
    return tensors


def model_state(tensors):
    """The float32 state dict of transformers' text model; vision and MTP left out."""
    skipped = ("mtp.", "model.visual.", "visual.")
    text = {name: tensor for name, tensor in tensors.items() if not name.startswith(skipped)}
    return _stack_experts({_canonical(name): value for name, value in _dequantised(text).items()})
