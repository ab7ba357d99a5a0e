#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the checkpoints of the random golden models: prepare.sh LIVEROW FOLDER [MODEL...]
set -eu
liverow=$1 folder=$2
shift 2
goldens=$(dirname "$0")/../../tests/goldens
grep -v '^#' "$goldens/models.txt" | while read -r model _ flags; do
    case " $* " in "  " | *" $model "*) ;; *) continue ;; esac
    mkdir -p "$folder/$model"
    # shellcheck disable=SC2086 # any number of words
    "$liverow" synth "$folder/$model" --config "$goldens/$model/config.json" --seed 1 --overwrite \
        --plan "$folder/$model/plan.json" $flags
done
