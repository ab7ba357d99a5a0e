#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each quantised format costs a model: perplexity of one text, as a table.

  tools/evals/perplexity_table.py models/tiny --corpus valid.txt.xz [--liverow build/release/liverow]
  tools/evals/perplexity_table.py MODEL --text FILE

--corpus is the held-out file of tools/tiny, scored as models/tiny/README.md says (chats as the template
renders them, each document followed by <|endoftext|>). Every row is `liverow quantize` into a scratch folder
and `liverow ppl --special` of it. --weights-only scores the dequantised weights, stored in F32, instead of
the folder itself: what the weights alone cost, also for a format that this liverow does not load; needs
torch and safetensors.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
ROWS = [
    ("fp8-block", []),
    ("fp8-channel", []),
    ("nvfp4-mixed", []),
    ("nvfp4-mixed", ["--scales", "mse"]),
    ("nvfp4", []),
    ("nvfp4", ["--scales", "mse"]),
    ("nvfp4", ["--experts-only"]),
    ("nvfp4", ["--experts-only", "--scales", "mse"]),
]


def held_out_text(path):
    """The documents of tools/tiny's held-out file as one text."""
    sys.path.insert(0, str(TOOLS / "tiny"))
    from corpus import chat_text, parse_turn, read_documents
    from spec import END_OF_TEXT

    texts = []
    for document in read_documents(path):
        turn = parse_turn(document)
        texts.append((chat_text([turn]) if turn else document) + END_OF_TEXT)
    return "".join(texts)


def write_dequantised(folder, out):
    """A plain copy: float32 weights under the names of the folder."""
    sys.path.insert(0, str(TOOLS / "goldens"))
    from safetensors.torch import save_file
    from weights import SCALES, dequantise, stored_tensors

    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("*.safetensors", "*.index.json", "hf_quant_config.json"))
    tensors = stored_tensors(folder)
    plain = {}
    for name, tensor in tensors.items():
        if name.rsplit(".", 1)[-1] not in SCALES:
            coded = tensor.element_size() == 1
            plain[name.removesuffix("_packed")] = dequantise(name, tensors) if coded else tensor
    save_file({name: tensor.contiguous() for name, tensor in plain.items()}, out / "model.safetensors")


def perplexity(options, folder, text):
    """What `liverow ppl` says."""
    command = [options.liverow, "ppl", folder, text, "--special", "--window", str(options.window)]
    command += ["--threads", str(options.threads)]
    run = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"^perplexity\s+([0-9.]+)", run.stdout, re.M)
    if not found:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stderr}")
    return float(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--corpus", type=Path)
    source.add_argument("--text", type=Path)
    parser.add_argument("--liverow", default="build/release/liverow")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--bytes", type=int, default=0, help="score that much of the text; 0: all")
    parser.add_argument("--weights-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        text = held_out_text(options.corpus) if options.corpus else options.text.read_text(encoding="utf-8")
        part = scratch / "text"
        part.write_text(text[: options.bytes] if options.bytes else text, encoding="utf-8")
        base = perplexity(options, options.model, part)
        print(f"{'plain':38} {base:10.6f}", flush=True)
        for number, (fmt, flags) in enumerate(ROWS):
            folder, plain = scratch / f"q{number}", scratch / f"p{number}"
            command = [options.liverow, "quantize", options.model, folder, "--format", fmt, *flags, "--json"]
            subprocess.run(command, check=True, capture_output=True)
            if options.weights_only:
                write_dequantised(folder, plain)
            value = perplexity(options, plain if options.weights_only else folder, part)
            print(f"{' '.join([fmt, *flags]):38} {value:10.6f} {100 * (value / base - 1):+7.2f} %", flush=True)
            shutil.rmtree(folder)
            shutil.rmtree(plain, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
