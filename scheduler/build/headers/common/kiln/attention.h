// What an online softmax needs of a wave's tile besides its product (kiln/mma.h).
#pragma once

#include <kiln/mma.h>

namespace kiln::mma {

// Lanes that hold one row of a tile together: a run of lanes that begins at a multiple of it.
template <typename Tile>
constexpr int lanes_of_row() {
  return Tile::kRowLanes;
}

template <typename Tile>
__device__ __forceinline__ void put(Tile& tile, int i, int j, typename Tile::Acc value) {
  tile.put(i, j, value);
}

}  // namespace kiln::mma
