// Conversions between the tensors of a Join request and tensor shapes. Pure functions; thread-safe.
#ifndef THINWIRE_PROTO_JOIN_TENSORS_H_
#define THINWIRE_PROTO_JOIN_TENSORS_H_

#include <span>
#include <vector>

#include "common/model/partition.h"
#include "proto/control.pb.h"

namespace thinwire {

// Returns the tensors of JOIN, as it states them. Partition::Make checks them.
std::vector<TensorShape> TensorsOf(const JoinRequest& join);

// Replaces the tensors of JOIN by TENSORS.
void SetTensors(std::span<const TensorShape> tensors, JoinRequest& join);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_JOIN_TENSORS_H_
