# SPDX-License-Identifier: Apache-2.0
"""Draws curve.csv as curve.svg, beside it.

    python plot.py CHECKPOINT_FOLDER
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 56, 16, 36, 48
LOW, HIGH = 2.4, 3.8
SERIES = [("train_loss", "training (with dropout)", "#8a8f98"), ("valid_all", "held out", "#1f6feb"),
          ("valid_story", "held out, stories", "#2da44e")]


def main() -> None:
    folder = Path(sys.argv[1])
    with (folder / "curve.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    last = max(float(row["epochs"]) for row in rows)

    def x(epochs: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * epochs / last

    def y(loss: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (HIGH - loss) / (HIGH - LOW)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="12" fill="#57606a"><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for tick in range(int(LOW * 10 + 0.5), int(HIGH * 10 + 0.5) + 1, 2):
        level = y(tick / 10)
        parts.append(f'<path d="M{LEFT} {level:.1f}H{WIDTH - RIGHT}" stroke="#d8dee4"/>'
                     f'<text x="{LEFT - 8}" y="{level + 4:.1f}" text-anchor="end">{tick / 10:.1f}</text>')
    for tick in range(0, int(last) + 1, 5):
        parts.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">epochs</text>')
    for number, (column, label, colour) in enumerate(SERIES):
        points = [(x(float(row["epochs"])), y(float(row[column]))) for row in rows]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{colour}"/>' for a, b in points]
        parts.append(f'<rect x="{LEFT + 190 * number}" y="14" width="12" height="4" fill="{colour}"/>'
                     f'<text x="{LEFT + 190 * number + 18}" y="20">{label}</text>')
    best = min(rows, key=lambda row: float(row["valid_all"]))
    parts.append(f'<path d="M{x(float(best["epochs"])):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#cf222e" '
                 f'stroke-dasharray="4 4"/><text x="{x(float(best["epochs"])) - 6:.1f}" y="{TOP + 14}" '
                 'text-anchor="end" fill="#cf222e">exported</text></svg>')
    (folder / "curve.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
