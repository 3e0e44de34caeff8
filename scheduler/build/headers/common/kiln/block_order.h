// Which tile of the result a block has.
#pragma once

#include <kiln/types.h>

namespace kiln {

// Blocks go round the GPU's dies, each of which has an L2 cache of its own: the place that makes
// neighbours of those on one die. A permutation of 0 ... blocks - 1.
constexpr __device__ __forceinline__ int32_t block_place(int32_t block, int32_t blocks) {
#if defined(__gfx942__) || defined(__gfx950__)
  constexpr int32_t kDies = 8;
  const int32_t die = block % kDies, each = blocks / kDies, more = blocks % kDies;
  return die * each + (die < more ? die : more) + block / kDies;
#else
  (void)blocks;
  return block;
#endif
}

struct TilePlace {
  int32_t m, n;
};

// GroupM rows of tiles at a time, column by column: blocks that run together share A and B in L2.
template <int GroupM>
constexpr __device__ __forceinline__ TilePlace tile_place(int32_t place, int32_t tiles_m, int32_t tiles_n) {
  const int32_t first = place / (GroupM * tiles_n) * GroupM;
  const int32_t rows = tiles_m - first < GroupM ? tiles_m - first : GroupM;
  return {first + place % (GroupM * tiles_n) % rows, place % (GroupM * tiles_n) / rows};
}

}  // namespace kiln
