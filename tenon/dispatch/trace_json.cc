// Recorded calls as JSON in Chrome's Trace Event Format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <set>

#include "tenon/core/dtype.h"
#include "tenon/dispatch/trace.h"

namespace tenon {
namespace {

/// A text as a JSON string. Names of operators may have any byte that is not ASCII: those pass as they are.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string arguments_of(const TraceEvent& e) {
  std::string shapes, types;
  for (const Dims& sizes : e.shapes) shapes += (shapes.empty() ? "" : ", ") + to_string(IntArrayRef(sizes));
  for (const DType t : e.dtypes) types += (types.empty() ? "" : ", ") + quoted(name(t));
  std::string text = fmt::format(R"("key": {}, "call": "{}", "Input Dims": [{}], "Input type": [{}])",
                                 quoted(e.key), e.redispatch ? "redispatch" : "call", shapes, types);
  if (e.stream) text += fmt::format(R"(, "stream": {})", quoted(to_string(*e.stream)));
  if (e.failed) text += R"(, "failed": true)";
  return text;
}

/// The tracks of devices: a process for each device, and a thread in it for each stream. Their numbers are
/// above those of processes (22 bits).
int64_t process_of(Device device) {
  return (int64_t{1} << 24) + device.backend * int64_t{256} + (device.index + 1);
}

std::string metadata(const char* what, int64_t process, uint64_t thread, std::string_view name) {
  return fmt::format(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", what,
                     process, thread, quoted(name));
}

}  // namespace

std::string chrome_trace(std::span<const TraceEvent> events) {
  const int64_t process = ::getpid();
  int64_t start = events.empty() ? 0 : events[0].begin_ns;
  std::set<int64_t> threads;
  std::map<std::pair<int64_t, uint64_t>, Stream> streams;
  std::vector<std::string> rows;
  for (const TraceEvent& e : events) {
    start = std::min(start, e.begin_ns);
    threads.insert(e.thread);
    if (e.stream) streams.emplace(std::pair(process_of(e.stream->device), e.stream->id), *e.stream);
  }
  rows.push_back(metadata("process_name", process, 0, "host"));
  for (const int64_t thread : threads) {
    rows.push_back(metadata("thread_name", process, static_cast<uint64_t>(thread),
                            thread == process ? "main thread" : fmt::format("thread {}", thread)));
  }
  int64_t named = -1;
  for (const auto& [track, stream] : streams) {
    if (track.first != named) {
      rows.push_back(metadata("process_name", track.first, 0, to_string(stream.device)));
      named = track.first;
    }
    rows.push_back(metadata("thread_name", track.first, track.second,
                            stream.id == 0 ? "default stream" : fmt::format("stream {}", stream.id)));
  }
  for (const TraceEvent& e : events) {
    const std::string begin = microseconds(e.begin_ns - start);
    rows.push_back(fmt::format(
        R"({{"ph": "X", "cat": "operator", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
        quoted(e.op), process, e.thread, begin, microseconds(e.end_ns - e.begin_ns), arguments_of(e)));
    if (!e.stream) continue;
    rows.push_back(
        fmt::format(R"({{"ph": "i", "s": "t", "cat": "queued", "name": {}, "pid": {}, "tid": {}, "ts": {}}})",
                    quoted(e.op), process_of(e.stream->device), e.stream->id, begin));
  }
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  for (size_t i = 0; i < rows.size(); ++i) text += rows[i] + (i + 1 < rows.size() ? ",\n" : "\n");
  return text + "]}\n";
}

}  // namespace tenon
