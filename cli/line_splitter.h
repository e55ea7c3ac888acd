// LineSplitter: makes lines of the bytes of a pipe, however they are cut. Not thread-safe.
#ifndef THINWIRE_CLI_LINE_SPLITTER_H_
#define THINWIRE_CLI_LINE_SPLITTER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

class LineSplitter {
 public:
  // A line longer than this is cut: a child must not fill its parent's memory.
  static constexpr size_t kLongestLine = 1 << 16;

  // The lines that BYTES complete, without their ends.
  std::vector<std::string> Take(std::string_view bytes);
  // What came after the last line's end, if anything did; called once no more bytes come.
  std::vector<std::string> TakeRest();

 private:
  std::string open_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_LINE_SPLITTER_H_
