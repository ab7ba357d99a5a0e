// SPDX-License-Identifier: Apache-2.0
#include "experts/schedule.h"

#include "experts/tiles.h"

namespace lr::experts {

std::vector<WorkTile> work_list(const Launch& launch) {
    std::vector<WorkTile> tiles;
    for (std::size_t b = 0; b < launch.blocks.size(); ++b)
        for (std::int32_t n = 0; n < launch.column_blocks; ++n)
            if (launch.blocks[b].action == Action::kCompute)
                tiles.push_back({static_cast<std::int32_t>(b), n});
    return tiles;
}

std::vector<std::int32_t> tiles_of_cta(std::int64_t tiles, std::int64_t ctas, std::int64_t cta) {
    std::vector<std::int32_t> mine;
    for (std::int64_t t = cta; t < tiles; t += ctas)
        mine.push_back(static_cast<std::int32_t>(t));
    return mine;
}

std::int64_t round_count(std::int64_t tiles, std::int64_t ctas) {
    return block_count(tiles, ctas);
}

double last_round_fill(std::int64_t tiles, std::int64_t ctas) {
    if (tiles == 0)
        return 0;
    const std::int64_t last = tiles - (round_count(tiles, ctas) - 1) * ctas;
    return static_cast<double>(last) / static_cast<double>(ctas);
}

TimeChange time_change(std::int64_t tiles_before, std::int64_t tiles_after, std::int64_t ctas) {
    TimeChange change{.tiles_before = tiles_before,
                      .tiles_after = tiles_after,
                      .rounds_before = round_count(tiles_before, ctas),
                      .rounds_after = round_count(tiles_after, ctas)};
    if (tiles_after > tiles_before)
        change.kind = TimeCase::kMoreTiles;
    else if (tiles_after == tiles_before)
        change.kind = TimeCase::kSameTiles;
    else
        change.kind = change.rounds_after == change.rounds_before ? TimeCase::kSameRounds
                                                                  : TimeCase::kFewerRounds;
    return change;
}

double TimeChange::ratio() const {
    return rounds_before == 0
               ? 1
               : static_cast<double>(rounds_after) / static_cast<double>(rounds_before);
}

const char* time_case_text(TimeCase kind) {
    switch (kind) {
    case TimeCase::kSameTiles:
        return "as many tiles: their work is the same, however few rows live in them";
    case TimeCase::kSameRounds:
        return "fewer tiles, as many rounds: less work, about the same time";
    case TimeCase::kFewerRounds:
        return "fewer tiles in fewer rounds: the time may fall with the rounds";
    case TimeCase::kMoreTiles:
        return "more tiles";
    }
    return "";
}

} // namespace lr::experts
