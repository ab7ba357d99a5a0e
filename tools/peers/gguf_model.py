#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GGUF with the shapes of a model folder and random weights, for timing llama.cpp beside liverow.

  tools/peers/gguf_model.py MODEL OUT.gguf [--head same|q8_0] [--seed 1]

Shapes come from MODEL/config.json. Each matrix gets the GGUF type nearest to what MODEL stores of it:
BF16 stays BF16, FP8 becomes Q8_0 (GGUF has no FP8), NVFP4 is NVFP4; `--head q8_0` makes the embedding
and the head Q8_0 as llama-quantize would, instead of what the folder has. What llama.cpp keeps in F32
(norms, the router, the convolution, the gates' vectors) is F32.
Numbers are drawn with a standard deviation near 0.02, symmetric about 0, so that values stay finite and
rows spread over all experts. Needs numpy and gguf (both from PyPI).
"""
import argparse
import json
import os
import struct
import sys

import gguf
import numpy as np

TYPES = gguf.GGMLQuantizationType
NVFP4 = getattr(TYPES, "NVFP4", None)  # gguf before 0.18 does not know it
DEVIATION = 0.02
POOL_BYTES = 32 << 20  # random bytes of a type; larger tensors repeat them
# numbers in a block, bytes of it
BLOCKS = {TYPES.F32: (1, 4), TYPES.BF16: (1, 2), TYPES.Q8_0: (32, 34), NVFP4: (64, 36)}
NEAREST = {"BF16": TYPES.BF16, "F32": TYPES.BF16, "F8_E4M3": TYPES.Q8_0, "U8": NVFP4}


def stored_types(folder):
    """Tensor name -> dtype, from the headers of the folder's safetensors files."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        for tensor, facts in header.items():
            if tensor != "__metadata__":
                found[tensor] = facts["dtype"]
    if not found:
        sys.exit(f"{folder}: expected *.safetensors, got none")
    return found


class Shapes:
    """The tensors of a GGUF of this family, as (name, dimensions, how it is filled, source or None)."""

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            root = json.load(file)
        self.config = root.get("text_config", root)
        self.tied = self.config.get("tie_word_embeddings", root.get("tie_word_embeddings", False))
        self.types = stored_types(folder)

    def __getitem__(self, key):
        return self.config[key]

    @property
    def moe(self):
        return "num_experts" in self.config

    def kinds(self):
        return self["layer_types"]

    def tensors(self):
        hidden, vocabulary = self["hidden_size"], self["vocab_size"]
        yield "token_embd.weight", (hidden, vocabulary), "matrix", "embed_tokens.weight"
        yield "output_norm.weight", (hidden,), "ones", None
        if not self.tied:
            yield "output.weight", (hidden, vocabulary), "matrix", "lm_head.weight"
        for layer, kind in enumerate(self.kinds()):
            block, source = f"blk.{layer}.", f"layers.{layer}."
            yield block + "attn_norm.weight", (hidden,), "ones", None
            yield block + "post_attention_norm.weight", (hidden,), "ones", None
            if kind == "full_attention":
                yield from self.attention(block, source + "self_attn.")
            else:
                yield from self.delta_net(block, source + "linear_attn.")
            if self.moe:
                yield from self.experts(block, source + "mlp.")
            else:
                yield from self.dense(block + "ffn_{}.weight", source + "mlp.", self["intermediate_size"])

    def attention(self, block, source):
        hidden, width = self["hidden_size"], self["head_dim"]
        queries, pairs = width * self["num_attention_heads"], width * self["num_key_value_heads"]
        # The gate of the output is a second half of the query projection.
        yield block + "attn_q.weight", (hidden, 2 * queries), "matrix", source + "q_proj.weight"
        yield block + "attn_k.weight", (hidden, pairs), "matrix", source + "k_proj.weight"
        yield block + "attn_v.weight", (hidden, pairs), "matrix", source + "v_proj.weight"
        yield block + "attn_output.weight", (queries, hidden), "matrix", source + "o_proj.weight"
        yield block + "attn_q_norm.weight", (width,), "ones", None
        yield block + "attn_k_norm.weight", (width,), "ones", None

    def delta_net(self, block, source):
        hidden, heads = self["hidden_size"], self["linear_num_value_heads"]
        keys = self["linear_num_key_heads"] * self["linear_key_head_dim"]
        values = heads * self["linear_value_head_dim"]
        yield block + "attn_qkv.weight", (hidden, 2 * keys + values), "matrix", source + "in_proj_qkv.weight"
        yield block + "attn_gate.weight", (hidden, values), "matrix", source + "in_proj_z.weight"
        yield block + "ssm_beta.weight", (hidden, heads), "matrix", source + "in_proj_b.weight"
        yield block + "ssm_alpha.weight", (hidden, heads), "matrix", source + "in_proj_a.weight"
        yield block + "ssm_out.weight", (values, hidden), "matrix", source + "out_proj.weight"
        yield block + "ssm_conv1d.weight", (self["linear_conv_kernel_dim"], 2 * keys + values), "normal", None
        yield block + "ssm_dt.bias", (heads,), "dt", None
        yield block + "ssm_a", (heads,), "decay", None
        yield block + "ssm_norm.weight", (self["linear_value_head_dim"],), "ones", None

    def dense(self, name, source, width):
        hidden = self["hidden_size"]
        yield name.format("gate"), (hidden, width), "matrix", source + "gate_proj.weight"
        yield name.format("up"), (hidden, width), "matrix", source + "up_proj.weight"
        yield name.format("down"), (width, hidden), "matrix", source + "down_proj.weight"

    def experts(self, block, source):
        hidden, count, width = self["hidden_size"], self["num_experts"], self["moe_intermediate_size"]
        yield block + "ffn_gate_inp.weight", (hidden, count), "normal", None
        up, down = source + "experts.gate_up_proj", source + "experts.down_proj"
        if self.stored(up) is None:  # one by one, not in stacks
            up, down = source + "experts.0.gate_proj.weight", source + "experts.0.down_proj.weight"
        yield block + "ffn_gate_exps.weight", (hidden, width, count), "matrix", up
        yield block + "ffn_up_exps.weight", (hidden, width, count), "matrix", up
        yield block + "ffn_down_exps.weight", (width, hidden, count), "matrix", down
        yield block + "ffn_gate_inp_shexp.weight", (hidden,), "normal", None
        yield from self.dense(block + "ffn_{}_shexp.weight", source + "shared_expert.",
                              self["shared_expert_intermediate_size"])

    def stored(self, source):
        """dtype of the tensor whose name ends so, at a dot; packed NVFP4 of compressed-tensors too."""
        for name, dtype in self.types.items():
            if any(name == end or name.endswith("." + end) for end in (source, source + "_packed")):
                return dtype
        return None

    def type_of(self, name, fill, source, head):
        if fill != "matrix":
            return TYPES.F32
        if head == "q8_0" and name in ("token_embd.weight", "output.weight"):
            return TYPES.Q8_0
        dtype = self.stored(source)
        if dtype not in NEAREST:
            sys.exit(f"{source}: expected one of {', '.join(NEAREST)}, got {dtype or 'no such tensor'}")
        if NEAREST[dtype] is None:
            sys.exit(f"{source}: NVFP4 needs a newer gguf package than {gguf.__file__}")
        return NEAREST[dtype]


def pool_of(kind, random):
    """Random blocks of a type, of the deviation wanted."""
    numbers, size = BLOCKS[kind]
    count = POOL_BYTES // size
    if kind == TYPES.BF16:
        values = random.standard_normal(count, dtype=np.float32) * np.float32(DEVIATION)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    if kind == TYPES.Q8_0:  # an F16 scale, 32 signed bytes
        scales = np.full(count, DEVIATION / 73.9) * random.choice([-1.0, 1.0], count)
        blocks[:, :2] = scales.astype(np.float16).view(np.uint8).reshape(count, 2)
    else:  # NVFP4: four E4M3 scales of 0.75 .. 1.4, then 64 E2M1 codes
        blocks[:, :4] = random.integers(0x34, 0x3C, (count, 4), dtype=np.uint8)
    return blocks.reshape(-1)


def small(fill, count, random):
    values = {"ones": lambda: np.ones(count),
              "normal": lambda: random.standard_normal(count) * (DEVIATION * 10 if count < 1 << 18 else DEVIATION),
              "dt": lambda: random.uniform(-4, 0, count),
              "decay": lambda: -random.uniform(0.05, 2, count),
              "factor": lambda: np.full(count, DEVIATION / 2.93)}[fill]()
    return values.astype(np.float32).view(np.uint8)


def byte_characters():
    """GPT-2's printable stand-ins for the 256 bytes."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) for byte in visible] + [chr(256 + i) for i in range(len(hidden))]


def write_facts(writer, shapes, file_type):
    config = shapes.config
    writer.add_type("model")
    writer.add_name("synthetic")
    writer.add_file_type(file_type)
    writer.add_quantization_version(2)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    rope = config["rope_parameters"]
    writer.add_rope_freq_base(float(rope["rope_theta"]))
    writer.add_rope_dimension_count(int(config["head_dim"] * rope["partial_rotary_factor"]))
    writer.add_rope_dimension_sections([*rope.get("mrope_section", [11, 11, 10]), 0])
    writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(config["linear_key_head_dim"])
    writer.add_ssm_group_count(config["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(config["linear_num_value_heads"])
    writer.add_ssm_inner_size(config["linear_num_value_heads"] * config["linear_value_head_dim"])
    writer.add_full_attention_interval(config.get("full_attention_interval", 4))
    if shapes.moe:
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    else:
        writer.add_feed_forward_length(config["intermediate_size"])


def write_vocabulary(writer, size):
    """Names for all ids; nothing is tokenised with them."""
    tokens = byte_characters()
    tokens += [f"token{i}" for i in range(len(tokens), size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * size)
    writer.add_token_merges(["t o"])
    writer.add_eos_token_id(size - 1)
    writer.add_bos_token_id(size - 1)
    writer.add_add_bos_token(False)


def write_model(folder, out, head="same", seed=1):
    """Writes the file and returns how many bytes each type has in it."""
    shapes = Shapes(folder)
    layout = []
    for name, dimensions, fill, source in shapes.tensors():
        kind = shapes.type_of(name, fill, source, head)
        layout.append((name, dimensions, fill, kind))
        if kind == NVFP4:  # one more factor for the tensor, or for each expert
            experts = dimensions[2] if len(dimensions) == 3 else 1
            layout.append((name.replace(".weight", ".scale"), (experts,), "factor", TYPES.F32))
    kinds = [kind for _, _, fill, kind in layout if fill == "matrix"]
    file_type = getattr(gguf.LlamaFileType, "MOSTLY_" + max(kinds, key=kinds.count).name)
    writer = gguf.GGUFWriter(out, "qwen35moe" if shapes.moe else "qwen35")
    write_facts(writer, shapes, file_type)
    write_vocabulary(writer, shapes["vocab_size"])
    total = {}
    for name, dimensions, _, kind in layout:
        numbers, size = BLOCKS[kind]
        if dimensions[0] % numbers:
            sys.exit(f"{name}: {kind.name} needs rows of a multiple of {numbers}, got {dimensions[0]}")
        count = int(np.prod(dimensions)) // numbers * size
        total[kind] = total.get(kind, 0) + count
        writer.add_tensor_info(name, dimensions[::-1], np.dtype(np.float32), count, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(seed)
    pools = {}
    for name, dimensions, fill, kind in layout:
        numbers, size = BLOCKS[kind]
        count = int(np.prod(dimensions)) // numbers
        if fill == "matrix":
            pool = pools.setdefault(kind, None)
            if pool is None:
                pool = pools[kind] = pool_of(kind, random)
            shift = int(random.integers(0, len(pool) // size)) * size
            data = np.resize(np.roll(pool, -shift), count * size)
        else:
            data = small(fill, count, random)
        writer.write_tensor_data(data)
    writer.close()
    return {kind.name: count for kind, count in total.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="model folder: config.json and *.safetensors")
    parser.add_argument("out")
    parser.add_argument("--head", choices=("same", "q8_0"), default="same")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for kind, count in write_model(options.model, options.out, options.head, options.seed).items():
        print(f"{kind:<6} {count / 1e6:10.1f} MB")


if __name__ == "__main__":
    main()
