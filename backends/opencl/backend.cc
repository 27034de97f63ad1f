#include "backend.h"

#include <algorithm>

namespace opencl {
namespace {

namespace abi = tenon::abi;

Abilities abilities_of_all(const std::vector<DeviceInfo>& devices, const std::string& without) {
  if (!without.empty() && without != "float64" && without != "division" && without != "float64,division")
    throw abi::Error(TENON_ERROR_VALUE,
                     "option without=" + without + ": expected float64, division or float64,division");
  Abilities all{without.find("float64") == std::string::npos, without.find("division") == std::string::npos,
                true};
  for (const DeviceInfo& d : devices) {
    all.f64 = all.f64 && d.abilities.f64;
    all.division = all.division && d.abilities.division;
    all.denormals = all.denormals && d.abilities.denormals;
  }
  return all;
}

Context new_context(const std::vector<DeviceInfo>& devices) {
  std::vector<cl_device_id> ids;
  for (const DeviceInfo& d : devices) ids.push_back(d.id);
  cl_int code = CL_SUCCESS;
  Context context(
      clCreateContext(nullptr, static_cast<cl_uint>(ids.size()), ids.data(), nullptr, nullptr, &code));
  check(code, "clCreateContext");
  return context;
}

Queue new_queue(cl_context context, const DeviceInfo& device, cl_command_queue_properties properties = 0) {
  cl_int code = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context, device.id, properties, &code));
  check(code, "clCreateCommandQueue");
  return queue;
}

std::vector<Queue> new_queues(cl_context context, const std::vector<DeviceInfo>& devices) {
  std::vector<Queue> queues;
  for (const DeviceInfo& d : devices) queues.push_back(new_queue(context, d));
  return queues;
}

}  // namespace

Backend::Backend(abi::Options options)
    : devices_(find_devices(options.text("platform", ""), options.text("type", "all"))),
      abilities_(abilities_of_all(devices_, options.text("without", ""))),
      context_((options.finish(), new_context(devices_))),
      queues_(new_queues(context_.get(), devices_)),
      used_(devices_.size()),
      kernels_(context_.get(), devices_, queues_, abilities_) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    descriptions_.push_back("OpenCL: " + devices_[i].name + (abilities_.f64 ? "" : ", without float64") +
                            (abilities_.division ? "" : ", without exact division of float32") +
                            (abilities_.denormals ? "" : ", denormals of float32 become 0"));
  }
}

Backend::~Backend() {
  streams_.each([](cl_command_queue queue) { clReleaseCommandQueue(queue); });
  buffers_.each([](cl_mem buffer) { clReleaseMemObject(buffer); });
  marks_.each([](Mark* mark) { delete mark; });
}

TenonAddress Backend::allocate(int32_t index, uint64_t nbytes) {
  const auto i = static_cast<size_t>(index);
  const DeviceInfo& device = devices_[i];
  const uint64_t used = used_[i].load(std::memory_order_relaxed);
  if (nbytes > std::min(device.largest_buffer, abi::kMaxSlotBytes) || used + nbytes > device.memory)
    throw abi::Error(TENON_ERROR_OUT_OF_MEMORY,
                     "a buffer has at most " + std::to_string(device.largest_buffer) + " bytes, and of " +
                         std::to_string(device.memory) + " " + std::to_string(used) + " are in use");
  const TenonAddress address = put(new_buffer(nbytes, nullptr), 0);
  used_[i].fetch_add(nbytes, std::memory_order_relaxed);
  return address;
}

TenonAddress Backend::put(Buffer buffer, uint64_t offset) {
  const int64_t slot = buffers_.put(buffer.get());
  if (slot < 0) throw abi::Error(TENON_ERROR_OUT_OF_MEMORY, "there are too many buffers");
  buffer.release();
  return abi::slot_address(static_cast<uint64_t>(slot), offset);
}

void Backend::free(int32_t index, TenonAddress address, uint64_t nbytes) {
  forget(address);
  used_[static_cast<size_t>(index)].fetch_sub(nbytes, std::memory_order_relaxed);
}

void Backend::forget(TenonAddress address) {
  const cl_mem buffer = buffers_.take(abi::slot_of(address));
  if (!buffer) no_buffer(address);
  kernels_.forget_buffers();
  check(clReleaseMemObject(buffer), "clReleaseMemObject");
}

TenonAddress Backend::import(cl_mem buffer, uint64_t offset, uint64_t nbytes) {
  cl_context context = nullptr;
  size_t size = 0;
  if (!buffer ||
      clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, nullptr) != CL_SUCCESS ||
      clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, nullptr) != CL_SUCCESS)
    throw abi::Error(TENON_ERROR_VALUE, "the data is no cl_mem");
  if (context != context_.get())
    throw abi::Error(TENON_ERROR_VALUE, "the buffer belongs to another OpenCL context than the device");
  if (offset > size || nbytes > size - offset || size > abi::kMaxSlotBytes)
    throw abi::Error(TENON_ERROR_VALUE, "the buffer has " + std::to_string(size) +
                                            " bytes; the tensor needs " + std::to_string(nbytes) +
                                            " from byte " + std::to_string(offset) + " on");
  check(clRetainMemObject(buffer), "clRetainMemObject");
  return put(Buffer(buffer), offset);
}

Backend::Side Backend::side(TenonAddress address, TenonPlace place) const {
  if (place == TENON_PLACE_HOST) return {nullptr, 0, reinterpret_cast<void*>(address)};
  return {buffer(address), abi::offset_of(address), nullptr};
}

void Backend::copy(TenonStream stream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
                   TenonPlace src_place, uint64_t nbytes, bool host_stays) {
  const cl_command_queue q = queue(stream);
  const Side to = side(dst, dst_place), from = side(src, src_place);
  if (!recordings_.records(q)) return copy(q, to, from, nbytes, host_stays);
  if ((!to.buffer || !from.buffer) && !host_stays)
    throw abi::Error(TENON_ERROR_RUNTIME, "the stream is being captured: memory of the host must stay");
  recordings_.add(q, [this, to, from, nbytes, kept = std::pair(shared(to.buffer), shared(from.buffer))](
                         cl_command_queue on) { copy(on, to, from, nbytes, true); });
}

void Backend::copy(cl_command_queue q, const Side& to, const Side& from, uint64_t nbytes, bool host_stays) {
  if (!from.buffer) {
    if (!host_stays && nbytes <= kStaged) {
      copy_between(q, new_buffer(nbytes, from.host).get(), 0, to.buffer, to.offset, nbytes);
      return;
    }
    note_wait(!host_stays);
    check(clEnqueueWriteBuffer(q, to.buffer, !host_stays, to.offset, nbytes, from.host, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  } else if (!to.buffer) {
    note_wait(!host_stays);
    check(clEnqueueReadBuffer(q, from.buffer, !host_stays, from.offset, nbytes, to.host, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  } else if (from.buffer != to.buffer || from.offset >= to.offset + nbytes ||
             to.offset >= from.offset + nbytes) {
    copy_between(q, from.buffer, from.offset, to.buffer, to.offset, nbytes);
  } else if (from.offset != to.offset) {
    // The driver copies no ranges that overlap.
    const Buffer between = new_buffer(nbytes, nullptr);
    copy_between(q, from.buffer, from.offset, between.get(), 0, nbytes);
    copy_between(q, between.get(), 0, to.buffer, to.offset, nbytes);
  }
}

Buffer Backend::new_buffer(uint64_t nbytes, void* elements) const {
  cl_int code = CL_SUCCESS;
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (elements ? CL_MEM_COPY_HOST_PTR : 0);
  Buffer buffer(clCreateBuffer(context_.get(), flags, nbytes, elements, &code));
  check(code, "clCreateBuffer");
  return buffer;
}

void Backend::copy_between(cl_command_queue queue, cl_mem from, size_t from_offset, cl_mem to,
                           size_t to_offset, size_t nbytes) {
  check(clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, nbytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
}

void Backend::wait(cl_command_queue queue) {
  note_wait(true);
  check(clFinish(queue), "clFinish");
}

void* Backend::allocate_host(uint64_t nbytes) {
  constexpr uint64_t kAlignment = 512;
  cl_int code = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, nbytes + kAlignment,
                               nullptr, &code));
  check(code, "clCreateBuffer");
  void* const mapped = clEnqueueMapBuffer(queues_[0].get(), buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                          0, nbytes + kAlignment, 0, nullptr, nullptr, &code);
  check(code, "clEnqueueMapBuffer");
  void* const address = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(mapped) + kAlignment - 1) /
                                                kAlignment * kAlignment);
  const std::lock_guard<std::mutex> lock(host_mutex_);
  host_memory_[address] = {std::move(buffer), mapped};
  return address;
}

void Backend::free_host(void* address) {
  const std::lock_guard<std::mutex> lock(host_mutex_);
  const auto found = host_memory_.find(address);
  if (found == host_memory_.end())
    throw abi::Error(TENON_ERROR_INTERNAL, "no memory of the host begins there");
  const HostMemory memory = std::move(found->second);
  host_memory_.erase(found);
  check(clEnqueueUnmapMemObject(queues_[0].get(), memory.buffer.get(), memory.mapped, 0, nullptr, nullptr),
        "clEnqueueUnmapMemObject");
}

uint64_t Backend::new_stream(int32_t index) {
  Queue queue = new_queue(context_.get(), devices_[static_cast<size_t>(index)]);
  const int64_t slot = streams_.put(queue.get());
  if (slot < 0) throw abi::Error(TENON_ERROR_RUNTIME, "there are too many streams");
  queue.release();
  return static_cast<uint64_t>(slot) + 1;
}

void Backend::free_stream(TenonStream stream) {
  const cl_command_queue queue = stream.id == 0 ? nullptr : streams_.take(stream.id - 1);
  if (!queue) no_stream(stream.id);
  check(clReleaseCommandQueue(queue), "clReleaseCommandQueue");  // what it has still runs
}

uint64_t Backend::new_event(int32_t index, bool timed) {
  const DeviceInfo& device = devices_[static_cast<size_t>(index)];
  auto mark =
      std::make_unique<Mark>(timed ? new_queue(context_.get(), device, CL_QUEUE_PROFILING_ENABLE) : nullptr);
  const int64_t slot = marks_.put(mark.get());
  if (slot < 0) throw abi::Error(TENON_ERROR_RUNTIME, "there are too many events");
  mark.release();
  return static_cast<uint64_t>(slot) + 1;
}

void Backend::free_event(uint64_t event) {
  delete &mark(event);
  marks_.take(event - 1);
}

Mark& Backend::mark(uint64_t event) const {
  Mark* const found = event == 0 ? nullptr : marks_.get(event - 1);
  if (!found) throw abi::Error(TENON_ERROR_VALUE, "there is no event " + std::to_string(event));
  return *found;
}

uint64_t Backend::end_capture(TenonStream stream, bool keep) {
  Recordings::Work recorded = recordings_.end(queue(stream));
  if (!keep) return 0;
  // When the work goes, its buffers may, too.
  const auto free = [this](const Recordings::Work* work) {
    delete work;
    kernels_.forget_buffers();
  };
  return recordings_.keep({new Recordings::Work(std::move(recorded)), free});
}

void Backend::launch_capture(TenonStream stream, uint64_t capture) {
  const std::shared_ptr<const Recordings::Work> work = recordings_.get(capture);
  const cl_command_queue q = queue(stream);
  for (const Command& command : *work) command(q);
}

void Backend::finish() noexcept {
  for (const Queue& queue : queues_) clFinish(queue.get());
  streams_.each([](cl_command_queue queue) { clFinish(queue); });
}

void Backend::no_buffer(TenonAddress address) {
  throw abi::Error(TENON_ERROR_INTERNAL, "address " + std::to_string(address) + " is in no buffer");
}

void Backend::no_stream(uint64_t id) {
  throw abi::Error(TENON_ERROR_VALUE, "there is no stream " + std::to_string(id));
}

}  // namespace opencl
