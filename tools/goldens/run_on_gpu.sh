#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes all goldens on a machine with a GPU, torch and transformers, and packs them into one file:
#   run_on_gpu.sh FOLDER OUT [DEVICE]        (FOLDER as prepare.sh wrote it; DEVICE cuda)
# OUT/goldens.tar.gz then holds <model>/golden.safetensors and <model>/meta.json; unpack it into
# tests/goldens. The trained model is taken along when models/tiny has its weights.
set -eu
checkpoints=$1 out=$2 device=${3:-cuda}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
tiny=
[ -e "$root/models/tiny/model.safetensors.index.json" ] && tiny="--tiny $root/models/tiny"
# shellcheck disable=SC2086 # two words or none
python3 "$root/tools/goldens/make.py" --synth "$checkpoints" $tiny --out "$work" --device "$device"
mkdir -p "$out"
tar -C "$work" -czf "$out/goldens.tar.gz" .
