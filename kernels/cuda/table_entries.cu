#include "kernels/cuda/table_entries.h"

#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

__global__ void PercentilesKernel(const float* sample, size_t count, float* entries,
                                  size_t entry_count) {
  const size_t j = threadIdx.x;
  if (j >= entry_count) return;
  const double part = 0.99 * static_cast<double>(j + 1) / static_cast<double>(entry_count);
  const double place = part * static_cast<double>(count - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = below + 1 < count ? below + 1 : count - 1;
  const double share = place - static_cast<double>(below);
  entries[j] = static_cast<float>((1 - share) * static_cast<double>(sample[below]) +
                                  share * static_cast<double>(sample[above]));
}

// Of the sample the first that is not below LEAST.
__device__ size_t FirstFrom(const float* sample, size_t count, float least) {
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = (first + end) / 2;
    if (sample[middle] < least) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

// A thread for each entry, which rests in the shared array between the rounds.
__global__ void RefineKernel(const float* sample, size_t count, int times, float* entries,
                             size_t entry_count) {
  __shared__ float entry[kMostEntries];
  __shared__ size_t ends[kMostEntries];  // of the samples nearest to each
  const size_t mine = threadIdx.x;
  const bool there = mine < entry_count;
  if (there) entry[mine] = entries[mine];
  __syncthreads();
  for (int time = 0; time < times; ++time) {
    if (there) {
      ends[mine] = mine + 1 == entry_count
                       ? count
                       : FirstFrom(sample, count, 0.5f * entry[mine] + 0.5f * entry[mine + 1]);
    }
    __syncthreads();
    // Halves of denormals are rounded, so one may end before the last.
    size_t begin = 0;
    for (size_t e = 0; there && e < mine; ++e) begin = ends[e] > begin ? ends[e] : begin;
    double sum = 0;
    for (size_t i = begin; there && i < ends[mine]; ++i) sum += static_cast<double>(sample[i]);
    if (there && ends[mine] > begin) {
      entry[mine] = static_cast<float>(sum / static_cast<double>(ends[mine] - begin));
    }
    __syncthreads();
  }
  if (there) entries[mine] = entry[mine];
}

}  // namespace

Status Percentiles(std::span<const float> sample, std::span<float> entries, const Stream& stream) {
  return Launch("find percentiles", PercentilesKernel, {1, unsigned{kMostEntries}}, stream,
                sample.data(), sample.size(), entries.data(), entries.size());
}

Status RefineEntries(std::span<const float> sample, int times, std::span<float> entries,
                     const Stream& stream) {
  return Launch("refine entries", RefineKernel, {1, unsigned{kMostEntries}}, stream, sample.data(),
                sample.size(), times, entries.data(), entries.size());
}

}  // namespace thinwire::kernels::cuda
