#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""liverow and llama.cpp on one machine, same shapes, in turns: decode and prefill, tokens a second.

  tools/peers/llama_cpp.py MODEL [MODEL ...] --llama-bench PATH [--liverow build/release/liverow]
                           [--threads 1,2] [--rounds 5] [--steps 64] [--prompt 512]

MODEL is a folder that `liverow synth` or `liverow quantize` wrote. Its GGUF (gguf_model.py: the same
shapes, the nearest types, random weights) is made beside it once, as MODEL.gguf. Each round runs both
programs, one after the other, for every number of threads; the table has medians over the rounds and
the ratio of the medians. Decode starts from an empty context and is timed with all that lies between
steps; a prompt is one batch of both. Both programs warm up first, on their own.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

PROMPT_BATCH = 512  # tokens in a step of both: liverow's default and llama-bench's -ub


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


class Ours:
    name = "liverow"

    def __init__(self, options):
        self.program = options.liverow
        self.options = options
        self.notes = {}

    def describe(self):
        return run([self.program, "--version"]).strip()

    def decode(self, model, threads):
        result = self.bench("step", model, threads, "--context", "0", "--steps", str(self.options.steps))
        self.notes[model, threads] = (f"{result['isa']}, {result['weight_bytes'] / 1e6:.0f} MB a step at "
                                      f"{100 * result['read_share']:.0f} % of {result['read_gbs']:.1f} GB/s, "
                                      f"threads waited {100 * result['waited_share']:.0f} % for a processor")
        return result["wall_tokens_per_second"]

    def prefill(self, model, threads):
        return self.bench("prefill", model, threads, "-n", str(self.options.prompt), "-r", "1")["tokens_per_second"]

    def bench(self, command, model, threads, *rest):
        return json.loads(run([self.program, "bench", command, model, "--threads", str(threads), "--json", *rest]))


class Theirs:
    name = "llama.cpp"

    def __init__(self, options):
        self.program = options.llama_bench
        self.options = options
        self.seen = "not run"

    def describe(self):
        return self.seen

    def decode(self, model, threads):
        return self.bench(model, threads, "-p", "0", "-n", str(self.options.steps))

    def prefill(self, model, threads):
        return self.bench(model, threads, "-p", str(self.options.prompt), "-n", "0", "-ub", str(PROMPT_BATCH))

    def bench(self, model, threads, *rest):
        flags = ["-t", str(threads), "-r", "1", "-o", "json", *self.options.llama_flags.split()]
        (result,) = json.loads(run([self.program, "-m", model + ".gguf", *flags, *rest]))
        self.seen = f"llama-bench {result['build_commit']} ({result['build_number']}), {result['backends']}, " \
                    f"{result['cpu_info']}"
        return result["avg_ts"]


def measure(model, options, programs):
    """(what, threads) -> program name -> tokens/s of each round. Rounds take turns: A B A B ..."""
    figures = {}
    for turn in range(options.rounds):
        for threads in options.threads:
            for what in ("decode", "prefill"):
                for program in programs:
                    print(f"  round {turn + 1}/{options.rounds}: {program.name} {what}, {threads} threads",
                          file=sys.stderr)
                    rate = getattr(program, what)(model, threads)
                    figures.setdefault((what, threads), {}).setdefault(program.name, []).append(rate)
    return figures


def spread(values):
    return 100 * (max(values) - min(values)) / statistics.median(values)


def print_figures(model, figures, programs):
    ours, theirs = programs
    print(f"\n{model}")
    print(f"{'':<10}{'threads':>8}{'liverow':>10}{'range %':>9}{'llama.cpp':>11}{'range %':>9}{'ratio':>8}")
    for (what, threads), rates in sorted(figures.items()):
        a, b = rates[ours.name], rates[theirs.name]
        print(f"{what:<10}{threads:>8}{statistics.median(a):>10.2f}{spread(a):>9.1f}{statistics.median(b):>11.2f}"
              f"{spread(b):>9.1f}{statistics.median(a) / statistics.median(b):>8.2f}")
    for (name, threads), note in ours.notes.items():
        if name == model:
            print(f"  liverow, {threads} threads: {note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--llama-flags", default="", help="more flags for llama-bench, such as '-fa 1'")
    parser.add_argument("--liverow", default="build/release/liverow")
    parser.add_argument("--threads", type=lambda text: [int(t) for t in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--head", choices=("same", "q8_0"), default="same", help="of a GGUF that is made here")
    options = parser.parse_args()
    options.models = [os.path.normpath(model) for model in options.models]
    programs = (Ours(options), Theirs(options))
    for model in options.models:
        if not os.path.exists(model + ".gguf"):
            import gguf_model  # needs packages that a ready file does not
            kinds = gguf_model.write_model(model, model + ".gguf", options.head)
            print(f"{model}.gguf: " + ", ".join(f"{kind} {count / 1e6:.0f} MB" for kind, count in kinds.items()))
        figures = measure(model, options, programs)
        print_figures(model, figures, programs)
    print(f"\nliverow    {programs[0].describe()}\nllama.cpp  {programs[1].describe()}"
          f"{'; flags ' + options.llama_flags if options.llama_flags else ''}")
    print(f"medians of {options.rounds} rounds in turns; tg{options.steps}, pp{options.prompt}; "
          f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
