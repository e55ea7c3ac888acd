// Writes the checkpoint of a small server, for checkpoint_page_test.py. The masters of its shard
// are 0 to 9.
//
//   write_checkpoint DIRECTORY
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/memory/array_bytes.h"
#include "server/durable/checkpoint.h"
#include "server/durable/files.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_checkpoint DIRECTORY\n");
    return 2;
  }
  thinwire::Checkpoint checkpoint;
  checkpoint.run.join.set_job("page");
  checkpoint.run.join.set_servers(1);
  thinwire::Tensor& tensor = *checkpoint.run.join.add_tensors();
  tensor.set_name("w");
  tensor.add_shape(2);
  tensor.add_shape(5);
  std::vector<float> masters(10);
  std::iota(masters.begin(), masters.end(), 0.0f);
  thinwire::SavedShard saved;
  saved.state.store.version = thinwire::Version{41};
  saved.state.store.masters = thinwire::CopyArray(std::as_bytes(std::span(masters)));
  checkpoint.shards.push_back(saved);
  thinwire::PosixFiles files;
  const absl::Status status = thinwire::WriteCheckpoint(files, argv[1], checkpoint);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
