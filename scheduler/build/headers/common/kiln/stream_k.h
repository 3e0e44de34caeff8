// How blocks that run all at once share out a product's steps along k, so that none of them is idle
// while others have a last tile.
#pragma once

#include <kiln/types.h>

namespace kiln {

// Every block has `whole` tiles of its own; the steps of the `rest` that are left, fewer tiles than
// there are blocks, lie one tile's behind the other's and are shared equally. A block's are then of
// two tiles at most, and no two blocks have the same `block + tile` (of the rest): the place of a part.
struct StreamShares {
  int32_t blocks, steps, whole, rest, each, longer;

  // `steps` of each tile; a tile without any has one, that adds nothing.
  constexpr StreamShares(int32_t tiles, int32_t steps_, int32_t blocks_)
      : blocks(blocks_),
        steps(steps_ > 0 ? steps_ : 1),
        whole(tiles / blocks_),
        rest(tiles % blocks_),
        each(rest * steps / blocks_),
        longer(rest * steps % blocks_) {}

  // The first step of a block, of all steps of the rest; the first blocks have one more than others.
  constexpr int32_t begin(int32_t block) const {
    return block * each + (block < longer ? block : longer);
  }
  // Whose step it is.
  constexpr int32_t block_of(int32_t step) const {
    const int32_t by_longer = longer * (each + 1);
    return step < by_longer ? step / (each + 1) : longer + (step - by_longer) / each;
  }
};

}  // namespace kiln
