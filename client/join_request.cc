#include "client/join_request.h"

namespace thinwire::client {

JoinRequest MakeJoinRequest(const ClientOptions& options, const Partition& partition) {
  JoinRequest request;
  request.set_job(options.job);
  request.set_worker(options.worker.value);
  for (const TensorShape& shape : partition.tensors()) {
    Tensor* tensor = request.add_tensors();
    tensor->set_name(shape.name);
    for (const int64_t dimension : shape.shape) tensor->add_shape(dimension);
  }
  // As it was asked for, so that the servers compute the same one.
  request.set_shard_size(options.shard_size);
  request.set_servers(options.server_count);
  request.set_partition_hash(partition.hash());
  request.set_planned_examples(options.planned_examples);
  return request;
}

}  // namespace thinwire::client
