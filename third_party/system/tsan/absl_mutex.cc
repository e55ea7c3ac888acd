// Shows the thread sanitizer the locks of Abseil. Debian's libabsl_synchronization is not compiled with the sanitizer, so
// without this file every access that an absl::Mutex orders looks like a race. Linked into all programs of --config=tsan.
//
// Each function below has the name of a function of Abseil and is found before it, also by the libraries of gRPC. It tells
// the sanitizer what happens and calls Abseil's own function, the next one of this name:
//
//   program, libgrpc, libabsl -> absl::Mutex::Lock here -> absl::Mutex::Lock of libabsl_synchronization
//
// The sanitizer ignores all accesses from a pre-call to the matching post-call. It thus does not check the conditions of
// Await and LockWhen, which Abseil evaluates in any thread that releases the mutex.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

constexpr unsigned kWrite = 0;
constexpr unsigned kRead = __tsan_mutex_read_lock;

// Returns Abseil's function with the mangled NAME.
template <typename Function>
Function* Next(const char* name) {
  void* const function = dlsym(RTLD_NEXT, name);
  if (function == nullptr) {
    std::fprintf(stderr, "%s: not found (expected it in libabsl_synchronization)\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(function);
}

// Calls LOCK, which locks MUTEX.
template <typename Lock>
auto Locked(Mutex* mutex, unsigned flags, const Lock& lock) {
  struct Annotation {
    Annotation(Mutex* mutex, unsigned flags) : mutex(mutex), flags(flags) {
      __tsan_mutex_pre_lock(mutex, flags);
    }
    ~Annotation() { __tsan_mutex_post_lock(mutex, flags, /*recursion=*/0); }
    Mutex* const mutex;
    const unsigned flags;
  } annotation(mutex, flags);
  return lock();
}

// Calls TRY_LOCK, which returns whether it has locked MUTEX.
template <typename TryLock>
bool Tried(Mutex* mutex, unsigned flags, const TryLock& try_lock) {
  flags |= __tsan_mutex_try_lock;
  __tsan_mutex_pre_lock(mutex, flags);
  const bool locked = try_lock();
  __tsan_mutex_post_lock(mutex, locked ? flags : flags | __tsan_mutex_try_lock_failed,
                         /*recursion=*/0);
  return locked;
}

template <typename Unlock>
void Unlocked(Mutex* mutex, unsigned flags, const Unlock& unlock) {
  __tsan_mutex_pre_unlock(mutex, flags);
  unlock();
  __tsan_mutex_post_unlock(mutex, flags);
}

// Calls WAIT, which unlocks MUTEX and locks it again. REQUIRES: the lock is exclusive.
template <typename Wait>
auto Waited(Mutex* mutex, const Wait& wait) {
  Unlocked(mutex, kWrite, [] {});
  return Locked(mutex, kWrite, wait);
}

// Returns the flag of a Notification, which HasBeenNotified reads in the program: the member after its mutex.
void* FlagOf(const Notification* notification) {
  static_assert(sizeof(Notification) == 2 * sizeof(Mutex));
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) + sizeof(Mutex);
}

}  // namespace

// The functions of Mutex and CondVar with a timeout call those with a deadline.

#define NEXT(name, ...) static auto* const next = Next<__VA_ARGS__>("_ZN4absl7debian3" name)
#define NEXT_CONST(name, ...) static auto* const next = Next<__VA_ARGS__>("_ZNK4absl7debian3" name)

Mutex::~Mutex() {
  NEXT("5MutexD1Ev", void(Mutex*));
  __tsan_mutex_destroy(this, __tsan_mutex_not_static);
  next(this);
}

void Mutex::Lock() {
  NEXT("5Mutex4LockEv", void(Mutex*));
  Locked(this, kWrite, [this] { next(this); });
}

void Mutex::Unlock() {
  NEXT("5Mutex6UnlockEv", void(Mutex*));
  Unlocked(this, kWrite, [this] { next(this); });
}

bool Mutex::TryLock() {
  NEXT("5Mutex7TryLockEv", bool(Mutex*));
  return Tried(this, kWrite, [this] { return next(this); });
}

void Mutex::ReaderLock() {
  NEXT("5Mutex10ReaderLockEv", void(Mutex*));
  Locked(this, kRead, [this] { next(this); });
}

void Mutex::ReaderUnlock() {
  NEXT("5Mutex12ReaderUnlockEv", void(Mutex*));
  Unlocked(this, kRead, [this] { next(this); });
}

bool Mutex::ReaderTryLock() {
  NEXT("5Mutex13ReaderTryLockEv", bool(Mutex*));
  return Tried(this, kRead, [this] { return next(this); });
}

void Mutex::LockWhen(const Condition& cond) {
  NEXT("5Mutex8LockWhenERKNS0_9ConditionE", void(Mutex*, const Condition&));
  Locked(this, kWrite, [&] { next(this, cond); });
}

bool Mutex::LockWhenWithDeadline(const Condition& cond, Time deadline) {
  NEXT("5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  return Locked(this, kWrite, [&] { return next(this, cond, deadline); });
}

void Mutex::ReaderLockWhen(const Condition& cond) {
  NEXT("5Mutex14ReaderLockWhenERKNS0_9ConditionE", void(Mutex*, const Condition&));
  Locked(this, kRead, [&] { next(this, cond); });
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& cond, Time deadline) {
  NEXT("5Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  return Locked(this, kRead, [&] { return next(this, cond, deadline); });
}

void Mutex::Await(const Condition& cond) {
  NEXT("5Mutex5AwaitERKNS0_9ConditionE", void(Mutex*, const Condition&));
  Waited(this, [&] { next(this, cond); });
}

bool Mutex::AwaitWithDeadline(const Condition& cond, Time deadline) {
  NEXT("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  return Waited(this, [&] { return next(this, cond, deadline); });
}

void CondVar::Wait(Mutex* mu) {
  NEXT("7CondVar4WaitEPNS0_5MutexE", void(CondVar*, Mutex*));
  Waited(mu, [&] { next(this, mu); });
}

bool CondVar::WaitWithDeadline(Mutex* mu, Time deadline) {
  NEXT("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", bool(CondVar*, Mutex*, Time));
  return Waited(mu, [&] { return next(this, mu, deadline); });
}

// The waits for a Notification that has been notified, and the calls of DecrementCount except the last, lock no mutex.

void Notification::Notify() {
  NEXT("12Notification6NotifyEv", void(Notification*));
  __tsan_release(FlagOf(this));
  next(this);
}

void Notification::WaitForNotification() const {
  NEXT_CONST("12Notification19WaitForNotificationEv", void(const Notification*));
  next(this);
  __tsan_acquire(FlagOf(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  NEXT_CONST("12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
             bool(const Notification*, Duration));
  const bool notified = next(this, timeout);
  if (notified) __tsan_acquire(FlagOf(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  NEXT_CONST("12Notification31WaitForNotificationWithDeadlineENS0_4TimeE",
             bool(const Notification*, Time));
  const bool notified = next(this, deadline);
  if (notified) __tsan_acquire(FlagOf(this));
  return notified;
}

bool BlockingCounter::DecrementCount() {
  NEXT("15BlockingCounter14DecrementCountEv", bool(BlockingCounter*));
  __tsan_release(this);
  // The waiting thread may destroy this object within the call.
  const bool last = next(this);
  return last;
}

void BlockingCounter::Wait() {
  NEXT("15BlockingCounter4WaitEv", void(BlockingCounter*));
  next(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
