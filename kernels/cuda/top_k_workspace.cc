#include "kernels/cuda/top_k_workspace.h"

#include "kernels/cuda/layout.h"
#include "kernels/cuda/tile.h"

namespace thinwire::kernels::cuda {

TopKWorkspace::TopKWorkspace(size_t count, size_t k, std::byte* memory)
    : tiles((count + kTileValues - 1) / kTileValues), room(RoomForCandidates(count, k)) {
  Layout layout(memory);
  state = layout.Place<TopKState>(1).data();
  tile_begin = layout.Place<uint32_t>(tiles).data();
  tile_count = layout.Place<uint32_t>(tiles).data();
  tile_totals = layout.Place<uint64_t>(tiles).data();
  candidate_indices = layout.Place<uint32_t>(room).data();
  candidate_values = layout.Place<float>(room).data();
  bytes = layout.bytes();
}

}  // namespace thinwire::kernels::cuda
