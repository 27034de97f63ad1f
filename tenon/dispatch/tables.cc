// How tables are computed from registrations: the rule for each cell, and the slow path of a call, which
// computes a table.
#include <fmt/core.h>

#include <cstring>
#include <new>

#include "tenon/core/device.h"
#include "tenon/core/error.h"
#include "tenon/dispatch/autograd_alone.h"
#include "tenon/dispatch/state.h"

namespace tenon {
namespace detail {

constinit const OperatorTable kNoTable{.mask = 0, .backends = -1, .slots = {}};
constinit Kernel underived_kernel;

}  // namespace detail

namespace {

const KernelRecord* find_kernel(const std::vector<KernelRecord>& records, DispatchKey key) {
  for (const KernelRecord& r : records) {
    if (r.key == key) return &r;
  }
  return nullptr;
}

const KernelRecord* find_fallback(const Dispatcher::State& state, DispatchKey key) {
  if (const KernelRecord* own = find_kernel(state.fallbacks, key)) return own;
  return key.functionality == Functionality::Autograd ? find_kernel(state.fallbacks, kAutogradAlias)
                                                      : nullptr;
}

ComputedCell cell_of(const KernelRecord& record, CellSource source) {
  if (record.function.is_fallthrough()) return {CellSource::Fallthrough, nullptr, record.where};
  if (record.function.is_not_implemented()) return {CellSource::Missing, nullptr, record.where};
  return {source, &record.kernel, record.where};
}

/// The BackendSelect kernel of an operator that makes tensors from nothing: the device argument names the
/// backend.
void select_backend(const Kernel&, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const auto& arguments = op.schema().arguments;
  const size_t first = stack.size() - arguments.size();
  Backend backend = kCpuBackend;
  Layout layout = Layout::Strided;
  for (size_t i = arguments.size(); i-- > 0;) {
    if (stack.tag(first + i) == CellTag::Device) backend = stack.at<Device>(first + i).backend;
    if (stack.tag(first + i) == CellTag::Layout) layout = stack.at<Layout>(first + i);
  }
  op.redispatch_boxed(DispatchKeySet(functionality_of(layout), backend), stack);
}
constexpr Kernel kSelectBackend{nullptr, &select_backend, nullptr};

constexpr uint32_t kAccelerators = 0x7FFFFFFEu;

/// For tensors of several devices, of an operator that takes them: continues on the device of the tensor that
/// is written, else of the first.
void choose_device(const Kernel&, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const auto& arguments = op.schema().arguments;
  const size_t first = stack.size() - arguments.size();
  std::optional<Backend> written, any;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (stack.tag(first + i) != CellTag::Tensor) continue;
    const Tensor& t = stack.at<Tensor>(first + i);
    if (!t.defined() || t.device().is_cpu() || t.is_meta()) continue;
    if (!any) any = t.device().backend;
    if (!written && arguments[i].is_write()) written = t.device().backend;
  }
  const Backend chosen = written ? *written : any.value_or(keys.backend());
  const uint64_t others = kAccelerators & ~(uint64_t{1} << chosen);
  op.redispatch_boxed(DispatchKeySet(keys.bits() & ~others), stack);
}
constexpr Kernel kChooseDevice{nullptr, &choose_device, nullptr};

bool makes_tensors_on_a_device(OperatorRegistrations& op) {
  // Not worth parsing most schemas for.
  if (op.builtin_schema && !std::strstr(op.builtin_schema, "Device")) return false;
  const schema::FunctionSchema* schema = op.declared_schema();
  if (!schema) return false;
  bool device = false;
  for (const schema::Argument& a : schema->arguments) {
    if (a.type.base == schema::BaseType::Tensor) return false;
    device |= a.type.base == schema::BaseType::Device && !a.type.list;
  }
  return device;
}

/// Below Autograd, for a key crossed with backends.
ComputedCell backend_cell(const Dispatcher::State& state, OperatorRegistrations& op, DispatchKey key) {
  if (const auto* own = find_kernel(op.kernels, key)) return cell_of(*own, CellSource::Kernel);
  const KernelRecord* dense =
      key.functionality == Functionality::Dense ? find_kernel(op.kernels, kCompositeDense) : nullptr;
  if (dense && dense->function.serves(key.backend)) return cell_of(*dense, CellSource::CompositeExplicit);
  if (const auto* all = find_kernel(op.kernels, kCompositeExplicit)) {
    return cell_of(*all, CellSource::CompositeExplicit);
  }
  if (const auto* all = find_kernel(op.kernels, kCompositeImplicit)) {
    return cell_of(*all, CellSource::CompositeImplicit);
  }
  if (key.functionality == Functionality::Dense) {
    if (const auto* alone = detail::autograd_alone(op, key.backend))
      return {CellSource::Kernel, &detail::kAutogradAlone, alone->where};
  }
  if (find_fallback(state, key)) {
    const auto* fallback = detail::fallback_for(state, op, key);
    return fallback ? cell_of(*fallback, CellSource::Fallback) : ComputedCell();
  }
  // It knows best what the backend lacks.
  if (dense) return cell_of(*dense, CellSource::CompositeExplicit);
  return {};
}

/// Whether calls run a catch-all kernel and nothing else: whatever it is made of passes each key by itself.
bool is_composite(OperatorRegistrations& op, Backend backend) {
  return find_kernel(op.kernels, kCompositeImplicit) &&
         !find_kernel(op.kernels, DispatchKey(Functionality::Dense, backend)) &&
         !find_kernel(op.kernels, kCompositeDense) && !find_kernel(op.kernels, kCompositeExplicit);
}

/// Views are metadata alone; recorders see what is made of them.
bool makes_views(OperatorRegistrations& op) {
  // Not worth parsing most schemas for.
  if (op.builtin_schema && !std::strstr(op.builtin_schema, "(a)") && !std::strstr(op.builtin_schema, "(a ->"))
    return false;
  const schema::FunctionSchema* schema = op.declared_schema();
  return schema && schema->is_view();
}

ComputedCell autograd_cell(const Dispatcher::State& state, OperatorRegistrations& op, DispatchKey key) {
  if (const auto* own = find_kernel(op.kernels, key)) return cell_of(*own, CellSource::Kernel);
  if (const auto* alias = find_kernel(op.kernels, kAutogradAlias)) return cell_of(*alias, CellSource::Kernel);
  // A catch-all kernel is differentiated through what it calls, unless something below has a kernel of its
  // own.
  if (is_composite(op, key.backend))
    return cell_of(*find_kernel(op.kernels, kCompositeImplicit), CellSource::CompositeImplicit);
  if (const auto* fallback = find_fallback(state, key)) return cell_of(*fallback, CellSource::Fallback);
  return {
      CellSource::Fallthrough, detail::underived_kernel.valid() ? &detail::underived_kernel : nullptr, {}};
}

/// A functionality that is not crossed with backends.
ComputedCell global_cell(const Dispatcher::State& state, OperatorRegistrations& op, DispatchKey key) {
  if (const auto* own = find_kernel(op.kernels, key)) return cell_of(*own, CellSource::Kernel);
  if (key.functionality == Functionality::BackendSelect) {
    if (makes_tensors_on_a_device(op)) {
      return {CellSource::Kernel, &kSelectBackend, SourceLocation::here()};
    }
  }
  if (key.functionality == Functionality::Record && (is_composite(op, kCpuBackend) || makes_views(op)))
    return {CellSource::Fallthrough, nullptr, {}};
  if (const auto* fallback = find_fallback(state, key)) return cell_of(*fallback, CellSource::Fallback);
  return {CellSource::Fallthrough, nullptr, {}};
}

void compute_column(const Dispatcher::State& state, OperatorRegistrations& op, Backend backend,
                    OperatorTable& column) {
  column.mask = DispatchKeySet::kBackendBits;
  column.backends = live_backends();
  for (int i = 0; i < kNumFunctionalities; ++i) {
    const auto f = static_cast<Functionality>(i);
    const DispatchKey key = is_per_backend(f) ? DispatchKey(f, backend) : DispatchKey(f);
    const ComputedCell cell = compute_cell(state, op, key);
    if (cell.source != CellSource::Fallthrough || cell.kernel) column.mask |= DispatchKeySet(f).bits();
    if (cell.kernel) column.slots[i] = *cell.kernel;
  }
}

/// Columns of `backends` backends and meta, all zero; `column` 0 is meta's.
std::shared_ptr<OperatorTable> make_columns(size_t count) {
  const size_t nbytes = count * sizeof(OperatorTable);
  void* memory = ::operator new (nbytes, std::align_val_t{alignof(OperatorTable)});
  std::memset(memory, 0, nbytes);  // padding as well, so that tables compare by their bytes
  return {static_cast<OperatorTable*>(memory),
          [](OperatorTable* p) { ::operator delete (p, std::align_val_t{alignof(OperatorTable)}); }};
}

void compute_table(Dispatcher::State& state, OperatorRegistrations& op) {
  const int backends = live_backends();
  const size_t columns = static_cast<size_t>(backends) + 1;
  auto table = make_columns(columns);
  OperatorTable* const cpu = table.get() + 1;
  compute_column(state, op, kMetaBackend, cpu[-1]);
  for (int b = 0; b < backends; ++b) compute_column(state, op, static_cast<Backend>(b), cpu[b]);
  // A backend that registered meanwhile belongs to the next computation.
  for (int b = -1; b < backends; ++b) cpu[b].backends = backends;
  op.computed_is_current = true;
  const bool same = op.computed && op.computed->backends == backends &&
                    std::memcmp(op.computed - 1, cpu - 1, columns * sizeof(OperatorTable)) == 0;
  if (same) return;
  op.computed = cpu;
  state.kept.push_back(std::move(table));
}

/// Tensors of more than one backend besides cpu and meta take part; no kernel can serve those.
bool has_two_accelerators(DispatchKeySet keys) noexcept {
  const auto accelerators = static_cast<uint32_t>(keys.bits()) & kAccelerators;
  return (accelerators & (accelerators - 1)) != 0;
}

}  // namespace

ComputedCell compute_cell(const Dispatcher::State& state, OperatorRegistrations& op, DispatchKey key) {
  if (!is_per_backend(key.functionality)) return global_cell(state, op, key);
  if (key.functionality == Functionality::Autograd) return autograd_cell(state, op, key);
  return backend_cell(state, op, key);
}

const KernelRecord* detail::fallback_for(const Dispatcher::State& state, const OperatorRegistrations& op,
                                         DispatchKey key) {
  const KernelRecord* const fallback = find_fallback(state, key);
  return fallback && fallback->function.takes(key.backend, op.full_name()) ? fallback : nullptr;
}

const OperatorTable& detail::column_of_device(const OperatorTable* table, DispatchKeySet keys) noexcept {
  const int32_t index = OperatorTable::column_index(keys);
  if (index >= table->backends || has_two_accelerators(keys)) [[unlikely]]
    return kNoTable;
  return table[index];
}

const OperatorTable& detail::compute_column(const OperatorEntry& entry, DispatchKeySet keys) {
  if (has_two_accelerators(keys)) {
    std::string names;
    for (Backend b = 1; b < kMetaBackend; ++b) {
      if (keys.has_backend(b)) names += (names.empty() ? "" : ", ") + std::string(backend_name(b));
    }
    throw_error(ErrorKind::Device,
                fmt::format("{}: the tensors are on more than one accelerator ({}); move them to one device",
                            entry.full_name(), names));
  }
  Dispatcher& dispatcher = Dispatcher::singleton();
  dispatcher.commit_pending();
  Dispatcher::State& state = dispatcher.state();
  const std::lock_guard lock(state.mutex);
  OperatorRegistrations* const registrations = state.of(entry);
  TENON_CHECK(registrations, NotImplemented,
              fmt::format("Operator '{}' has no declaration", entry.full_name()));
  OperatorRegistrations& op = *registrations;
  const int32_t index = OperatorTable::column_index(keys);
  if (!op.computed_is_current || index >= op.computed->backends) compute_table(state, op);
  // A traced call must come here again.
  if (!dispatch_trace_enabled.load(std::memory_order_relaxed)) {
    for (OperatorEntry* each : op.entries) each->table.store(op.computed, std::memory_order_release);
  }
  return index < op.computed->backends ? op.computed[index] : kNoTable;
}

const Kernel& detail::find_kernel(const OperatorEntry& entry, DispatchKeySet keys) {
  if (entry.crosses_devices && has_two_accelerators(keys)) return kChooseDevice;
  const Kernel* kernel = &column_of(entry, keys).lookup(keys);
  if (!kernel->valid()) kernel = &compute_column(entry, keys).lookup(keys);
  if (!kernel->valid()) missing_kernel(entry, keys);
  return *kernel;
}

}  // namespace tenon
