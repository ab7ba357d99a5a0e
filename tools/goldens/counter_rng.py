#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The counter-based generator of src/numerics/counter_rng.h, in numpy, bit for bit.

A value depends on (seed, tensor name, flat element index) alone. Only integer operations modulo 2^64
and single IEEE float32 operations occur. `--self-test` prints the literal values that
tests/numerics/counter_rng_test.cc expects.
"""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
CHUNK = 1 << 20  # elements at a time; bounds the memory for temporaries


def fnv1a64(text):
    """FNV-1a of the UTF-8 bytes of text, as a Python int."""
    value = 0xCBF29CE484222325
    for byte in text.encode("utf-8"):
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def mix64(x):
    """splitmix64's finaliser, on a uint64 array (wraps silently)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mix64_int(x):
    return int(mix64(np.array([x & MASK], dtype=np.uint64))[0])


def _unit(bits):
    return (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def normal_scale(std):
    """float32(std / 37837.2275)."""
    return np.float32(np.float64(std) / np.float64(37837.2275))


class CounterRng:
    """The values of one tensor. Indices are flat, row-major."""

    def __init__(self, tensor_name, seed):
        self.key = fnv1a64(tensor_name) ^ ((seed * GOLDEN) & MASK)

    def bits(self, first, count):
        """uint64 [count]: the raw bits of elements first .. first + count."""
        index = np.arange(first + 1, first + count + 1, dtype=np.uint64)
        return mix64(np.uint64(self.key) + index * np.uint64(GOLDEN))

    def normal_sum(self, first, count):
        """int32 [count]."""
        x = self.bits(first, count)
        low = np.uint64(0xFFFF)
        total = (x & low) + (x >> np.uint64(16) & low) + (x >> np.uint64(32) & low)
        return (total + (x >> np.uint64(48))).astype(np.int32) - np.int32(131070)

    def normal(self, shape, std, mean=0.0):
        """float32 array of the shape: mean + sum * normal_scale(std)."""
        scale, mean = normal_scale(std), np.float32(mean)

        def part(first, count):
            return mean + self.normal_sum(first, count).astype(np.float32) * scale

        return self._fill(shape, part)

    def uniform(self, shape, lo, hi):
        """float32 array of the shape: lo + unit * (hi - lo)."""
        lo, hi = np.float32(lo), np.float32(hi)
        width = hi - lo
        return self._fill(shape, lambda first, count: lo + _unit(self.bits(first, count)) * width)

    @staticmethod
    def _fill(shape, part):
        out = np.empty(int(np.prod(shape, dtype=np.int64)), dtype=np.float32)
        for first in range(0, out.size, CHUNK):
            count = min(CHUNK, out.size - first)
            out[first : first + count] = part(first, count)
        return out.reshape(shape)


def counter_bits(seed, stream, position):
    """The sampler's draw: 64 bits."""
    key = (_mix64_int(_mix64_int(seed + GOLDEN) + stream)) & MASK
    return _mix64_int(key + (position + 1) * GOLDEN)


def bf16_bits(x):
    """uint16 array: float32 rounded to bf16, nearest, ties to even (finite values)."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(
        np.uint16
    )


def round_bf16(x):
    """float32 array: the bf16 values nearest to x."""
    return (bf16_bits(x).astype(np.uint32) << np.uint32(16)).view(np.float32)


def self_test():
    """Prints the vectors; floats as their IEEE bits."""

    def hex_bits(values):
        return " ".join(f"0x{v:08X}" for v in np.asarray(values, np.float32).view(np.uint32))

    name = "model.language_model.layers.3.mlp.gate.weight"
    print(f"fnv1a64            0x{fnv1a64(name):016X}")
    rng = CounterRng(name, 42)
    print("bits[0..3]        ", " ".join(f"0x{int(v):016X}" for v in rng.bits(0, 4)))
    print(f"bits[2^40]         0x{int(rng.bits(1 << 40, 1)[0]):016X}")
    print("normal_sum[0..7]  ", " ".join(str(int(v)) for v in rng.normal_sum(0, 8)))
    print(f"normal_scale(0.02) {hex_bits([normal_scale(0.02)])}")
    print("normal(0.02)      ", hex_bits(rng.normal([8], 0.02)))
    print("normal(0.1, 1.0)  ", hex_bits(rng.normal([8], 0.1, 1.0)))
    print("bf16 of these     ", " ".join(f"0x{int(v):04X}" for v in bf16_bits(rng.normal([8], 0.1, 1.0))))
    print("uniform(-4, 1.5)  ", hex_bits(rng.uniform([8], -4.0, 1.5)))
    draws = [(7, 3, 0), (7, 3, 1), (7, 4, 0), (MASK, MASK, MASK - 1)]
    print("counter_bits      ", " ".join(f"0x{counter_bits(*draw):016X}" for draw in draws))
    sums = CounterRng("moments", 1).normal_sum(0, CHUNK).astype(np.float64)
    print(f"moments            mean {sums.mean():.3f} std {sums.std():.3f} of {CHUNK}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--self-test", action="store_true", help="print the shared test vectors")
    if parser.parse_args().self_test:
        self_test()
    else:
        parser.print_help()
