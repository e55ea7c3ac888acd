#include "proto/counters.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

template <typename Visit>
void ForEachCounterField(const Descriptor& type, const Visit& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      visit(field);
    }
  }
}

}  // namespace

void ForEachCounter(const Message& message,
                    const std::function<void(const std::string& name, uint64_t value)>& visit) {
  ForEachCounterField(*message.GetDescriptor(), [&](const FieldDescriptor* field) {
    visit(field->name(), message.GetReflection()->GetUInt64(message, field));
  });
}

void AddCounters(const Message& from, Message& to) {
  ForEachCounterField(*from.GetDescriptor(), [&](const FieldDescriptor* field) {
    const uint64_t sum =
        to.GetReflection()->GetUInt64(to, field) + from.GetReflection()->GetUInt64(from, field);
    to.GetReflection()->SetUInt64(&to, field, sum);
  });
}

CounterArray::CounterArray(const Descriptor& type) {
  ForEachCounterField(type, [this](const FieldDescriptor* field) {
    counts_.resize(std::max(counts_.size(), static_cast<size_t>(field->number()) + 1));
  });
}

void CounterArray::CopyTo(Message& message) const {
  ForEachCounterField(*message.GetDescriptor(), [&](const FieldDescriptor* field) {
    message.GetReflection()->SetUInt64(&message, field,
                                       counts_[static_cast<size_t>(field->number())]);
  });
}

}  // namespace thinwire
