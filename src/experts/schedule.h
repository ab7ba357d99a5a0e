// SPDX-License-Identifier: Apache-2.0
//
// experts/schedule.h: the tiles of a launch as work for P programs that take one after the other
// (persistent CTAs, or as many as fit on the machine at a time), and what fewer rows do to the time
// they need. Time is counted in rounds: every tile takes as long, and P of them run at once. No
// barrier holds the programs of a round together; the count is a way to see the tail.
#pragma once

#include "experts/launch.h"

namespace lr::experts {

// A tile with work: number t of the list computes columns [column * BN, ...) of its row block.
struct WorkTile {
    std::int32_t block = 0;  // of Launch::blocks
    std::int32_t column = 0; // column block
    friend bool operator==(const WorkTile&, const WorkTile&) = default;
};

// Computing blocks in order, the column blocks of each one after the other.
std::vector<WorkTile> work_list(const Launch& launch);

// Tiles of program c of P: c, c + P, c + 2P, ...
std::vector<std::int32_t> tiles_of_cta(std::int64_t tiles, std::int64_t ctas, std::int64_t cta);

std::int64_t round_count(std::int64_t tiles, std::int64_t ctas);
// Programs that have a tile in the last round, as a share of P; 0 without tiles.
double last_round_fill(std::int64_t tiles, std::int64_t ctas);

// What happens to the time when the rows change.
enum class TimeCase : std::uint8_t {
    kSameTiles,   // fewer rows in as many tiles: the work of the blocks is the same
    kSameRounds,  // fewer tiles, all of which ran at once, or in as many rounds: about as long
    kFewerRounds, // fewer tiles in fewer rounds: the time may fall with them
    kMoreTiles    // more tiles
};
struct TimeChange {
    std::int64_t tiles_before = 0, tiles_after = 0;
    std::int64_t rounds_before = 0, rounds_after = 0;
    TimeCase kind = TimeCase::kSameTiles;
    // Rounds after over rounds before; 1 where there were none before or after.
    double ratio() const;
};
TimeChange time_change(std::int64_t tiles_before, std::int64_t tiles_after, std::int64_t ctas);
const char* time_case_text(TimeCase kind); // a sentence

} // namespace lr::experts
