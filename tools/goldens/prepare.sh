#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the checkpoints of the random golden models: prepare.sh LIVEROW FOLDER
set -eu
liverow=$1 folder=$2
configs=$(dirname "$0")/../../tests/goldens
for model in dense-tied-r1 dense-untied-r2 moe-untied-r1 moe-tied-r2; do
    mkdir -p "$folder/$model"
    "$liverow" synth "$folder/$model" --config "$configs/$model/config.json" --seed 1 --overwrite \
        --plan "$folder/$model/plan.json"
done
