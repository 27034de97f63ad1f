#include "tenon/core/memory_stats.h"

#include <fmt/core.h>

#include <algorithm>

namespace tenon {
namespace {

struct PooledRow {
  const char* name;
  const char* title;
  bool bytes;
  PooledStat MemoryStats::*stat;
};
/// In the order of the summary.
constexpr PooledRow kPooled[] = {
    {"allocated_bytes", "Allocated memory", true, &MemoryStats::allocated_bytes},
    {"active_bytes", "Active memory", true, &MemoryStats::active_bytes},
    {"requested_bytes", "Requested memory", true, &MemoryStats::requested_bytes},
    {"reserved_bytes", "Reserved memory", true, &MemoryStats::reserved_bytes},
    {"inactive_split_bytes", "Non-releasable memory", true, &MemoryStats::inactive_split_bytes},
    {"allocation", "Allocations", false, &MemoryStats::allocation},
    {"active", "Active blocks", false, &MemoryStats::active},
    {"segment", "Segments", false, &MemoryStats::segment},
    {"inactive_split", "Non-releasable blocks", false, &MemoryStats::inactive_split},
};

struct PlainRow {
  const char* name;
  const char* title;
  MemoryStat MemoryStats::*stat;
};
constexpr PlainRow kPlain[] = {
    {"oversize_allocations", "Oversize allocations", &MemoryStats::oversize_allocations},
    {"oversize_segments", "Oversize segments", &MemoryStats::oversize_segments},
};

struct CountRow {
  const char* name;
  int64_t MemoryStats::*count;
};
constexpr CountRow kCounts[] = {
    {"max_split_size", &MemoryStats::max_split_size},
    {"num_alloc_retries", &MemoryStats::num_alloc_retries},
    {"num_device_alloc", &MemoryStats::num_device_alloc},
    {"num_device_free", &MemoryStats::num_device_free},
    {"num_ooms", &MemoryStats::num_ooms},
    {"num_sync_all_streams", &MemoryStats::num_sync_all_streams},
};

/// A number of at most six digits and its unit, ten characters wide.
std::string cell(int64_t value, bool bytes) {
  static constexpr const char* kByteUnits[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static constexpr const char* kCountUnits[] = {"   ", "K  ", "M  "};
  const int64_t step = bytes ? 1024 : 1000;
  const size_t last = bytes ? std::size(kByteUnits) - 1 : std::size(kCountUnits) - 1;
  size_t unit = 0;
  while (value >= step * 768 && unit < last) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:6} {}", value, bytes ? kByteUnits[unit] : kCountUnits[unit]);
}

std::string line(std::string_view title, const MemoryStat& stat, bool bytes) {
  return fmt::format("| {:<21} | {} | {} | {} | {} |\n", title, cell(stat.current, bytes),
                     cell(stat.peak, bytes), cell(stat.allocated, bytes), cell(stat.freed, bytes));
}

}  // namespace

std::vector<std::pair<std::string, MemoryFigure>> named_memory_stats(const MemoryStats& stats) {
  std::vector<std::pair<std::string, MemoryFigure>> named;
  const auto add = [&](const std::string& name, const MemoryStat& stat) {
    named.emplace_back(name + ".current", stat.current);
    named.emplace_back(name + ".peak", stat.peak);
    named.emplace_back(name + ".allocated", stat.allocated);
    named.emplace_back(name + ".freed", stat.freed);
  };
  for (const PooledRow& row : kPooled) {
    const PooledStat& stat = stats.*row.stat;
    add(fmt::format("{}.all", row.name), stat);
    add(fmt::format("{}.small_pool", row.name), stat.small_pool);
    add(fmt::format("{}.large_pool", row.name), stat.large_pool);
  }
  for (const PlainRow& row : kPlain) add(row.name, stats.*row.stat);
  for (const CountRow& row : kCounts) named.emplace_back(row.name, stats.*row.count);
  named.emplace_back("fragmentation.current", stats.fragmentation());
  named.emplace_back("fragmentation.peak", std::max(stats.fragmentation_peak, stats.fragmentation()));
  named.emplace_back("waste.peak", stats.waste_peak());
  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return named;
}

std::string memory_summary(std::string_view device, const MemoryStats& stats, bool abbreviated) {
  const std::string rule = fmt::format("|{:-<75}|\n", "");
  std::string text = fmt::format("| {:<73} |\n", fmt::format("Memory of {}", device)) + rule;
  const auto row = [&](const std::string& words) { text += fmt::format("| {:<73} |\n", words); };
  row(fmt::format("out of memory: {} times   retries: {}", stats.num_ooms, stats.num_alloc_retries));
  row(fmt::format("fragmentation: {:.1f} %   waste at the peak: {:.1f} %", 100 * stats.fragmentation(),
                  100 * stats.waste_peak()));
  text += rule;
  text += "| Quantity              |    Current |       Peak |  Allocated |      Freed |\n";
  for (const PooledRow& row : kPooled) {
    const PooledStat& stat = stats.*row.stat;
    text += rule + line(row.title, stat, row.bytes);
    if (abbreviated) continue;
    text += line("      large pool", stat.large_pool, row.bytes);
    text += line("      small pool", stat.small_pool, row.bytes);
  }
  for (const PlainRow& row : kPlain) text += rule + line(row.title, stats.*row.stat, false);
  return text + rule;
}

}  // namespace tenon
