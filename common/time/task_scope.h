// TaskScope makes tasks of an object that may be destroyed before they run. A task of a destroyed
// scope does nothing.
//
//   class Link {
//     void Reopen() { loop_->PostAt(at, scope_.Bind([this] { Open(); })); }
//     TaskScope scope_;
//   };
#ifndef THINWIRE_COMMON_TIME_TASK_SCOPE_H_
#define THINWIRE_COMMON_TIME_TASK_SCOPE_H_

#include <memory>
#include <utility>

namespace thinwire {

// Must be destroyed on the executor that runs its tasks. Bind may be called from any thread.
class TaskScope {
 public:
  TaskScope() = default;
  ~TaskScope() { *alive_ = false; }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  // Returns a function that calls FUNCTION while this scope exists. It may be copied, and called or
  // destroyed after the scope.
  template <typename Function>
  auto Bind(Function function) const {
    return [alive = alive_, function = std::move(function)](auto&&... arguments) mutable {
      if (*alive) function(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_TASK_SCOPE_H_
