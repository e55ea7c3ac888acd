// Early returns for functions that return absl::Status or absl::StatusOr.
//
//   RETURN_IF_ERROR(file.Write(bytes));
//   ASSIGN_OR_RETURN(const Partition partition, Partition::Make(tensors, size, servers));
//
// Both macros evaluate their expression once. ASSIGN_OR_RETURN expands to several statements and
// therefore requires braces as the body of an `if`. A declaration that contains a comma outside
// parentheses requires a type alias.
#ifndef THINWIRE_COMMON_BASE_STATUS_MACROS_H_
#define THINWIRE_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of EXPRESSION from the enclosing function unless it is OK.
#define RETURN_IF_ERROR(expression)                  \
  do {                                               \
    absl::Status thinwire_status = (expression);     \
    if (ABSL_PREDICT_FALSE(!thinwire_status.ok())) { \
      return thinwire_status;                        \
    }                                                \
  } while (false)

// Initializes DECLARATION with the value of EXPRESSION, an absl::StatusOr, or returns the error of
// EXPRESSION from the enclosing function.
#define ASSIGN_OR_RETURN(declaration, expression) \
  THINWIRE_ASSIGN_OR_RETURN(THINWIRE_CONCAT(thinwire_status_or_, __LINE__), declaration, expression)

#define THINWIRE_ASSIGN_OR_RETURN(result, declaration, expression) \
  auto result = (expression);                                      \
  if (ABSL_PREDICT_FALSE(!result.ok())) {                          \
    return std::move(result).status();                             \
  }                                                                \
  declaration = *std::move(result)

#define THINWIRE_CONCAT(a, b) THINWIRE_CONCAT_INNER(a, b)
#define THINWIRE_CONCAT_INNER(a, b) a##b

#endif  // THINWIRE_COMMON_BASE_STATUS_MACROS_H_
