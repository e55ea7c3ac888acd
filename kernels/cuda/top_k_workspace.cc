#include "kernels/cuda/top_k_workspace.h"

#include "kernels/cuda/tile.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr size_t kAlignment = 16;

// Puts arrays one behind the other.
class Layout {
 public:
  explicit Layout(std::byte* memory) : memory_(memory) {}

  template <typename T>
  void Place(size_t count, T*& array) {
    array = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* const memory_;
  size_t bytes_ = 0;
};

}  // namespace

TopKWorkspace::TopKWorkspace(size_t count, size_t k, std::byte* memory)
    : tiles((count + kTileValues - 1) / kTileValues), room(RoomForCandidates(count, k)) {
  Layout layout(memory);
  layout.Place(1, state);
  layout.Place(tiles, tile_begin);
  layout.Place(tiles, tile_count);
  layout.Place(tiles, tile_totals);
  layout.Place(room, candidate_indices);
  layout.Place(room, candidate_values);
  bytes = layout.bytes();
}

}  // namespace thinwire::kernels::cuda
