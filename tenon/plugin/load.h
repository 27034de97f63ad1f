// Loading devices that are built outside Tenon (tenon/abi), under names of their own, and unloading them.
// Used by applications and by the Python package. docs/backends.md is the contract of the other side.
#pragma once

#include "tenon/core/require_cxx20.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/core/device.h"
#include "tenon/core/dtype.h"

namespace tenon {

/// What a plug-in is asked to do: pairs of name and value, which it defines.
using DeviceOptions = std::vector<std::pair<std::string, std::string>>;

/// Loads a device from a shared library that exports `tenon_plugin_v1`, and returns it. `name` is what the
/// device is called, by default what its plug-in says; one file may be loaded under several names, each with
/// state of its own.
///
/// Throws FileError for a file that cannot be loaded, Error{Device} for one that is no plug-in, needs a newer
/// Tenon or lacks required functions (all are named), and for a name that is taken; Error{Value} for a
/// malformed name; and whatever the plug-in itself fails with. Nothing is registered then.
Device load_device(const std::string& path, std::string_view name = {}, const DeviceOptions& options = {});

/// Unloads a device: its kernels, stubs and fallbacks go, its name and its key are free again, its streams
/// are given back, and its instance ends. Another device of the same file stays as it is. Its file may be
/// loaded again, also after another build.
///
/// Throws Error{Runtime}, and does nothing, while something of it lives: the message counts storages (of
/// tensors, those that autograd has saved included), streams, events and blocks of pinned memory. Throws
/// Error{Value} for a name that no loaded device has. A device that has failed is unloaded, too, but its code
/// and its memory stay. What fails once nothing lives any more (freeing a stream, ending the instance) is
/// thrown after the device is gone.
void unload_device(std::string_view name);

/// The device called `name`, which is loaded if it is not: the file `libtenon_NAME.so` or `NAME.so` in a
/// folder of TENON_PLUGIN_PATH (separated by colons), or in the folder `tenon/plugins` next to Tenon's own
/// library; then what the finder gives. The working directory is not searched. Throws Error{Value} where
/// there is none, naming the folders.
Device find_device(std::string_view name);

/// Gives the path of the file for a device of that name, or nothing: for a language's own way of finding what
/// is installed. It may throw, and may be called by any thread.
using PluginFinder = std::string (*)(std::string_view name);
void set_plugin_finder(PluginFinder finder) noexcept;

/// A loaded device.
struct LoadedDevice {
  Backend backend;
  std::string name;         ///< "openreg"
  std::string path;         ///< Of its file.
  std::string description;  ///< What the plug-in says of its device 0.
};
std::vector<LoadedDevice> loaded_devices();

/// What a loaded device says of itself, and that it computes.
struct DeviceClaims {
  std::string description;
  uint64_t total_memory = 0;     ///< In bytes; 0 where it is not known.
  uint64_t granularity = 0;      ///< Of its allocations, in bytes.
  uint64_t map_granularity = 0;  ///< Of what it maps; 0: its segments are taken whole, and never expandable.
  std::vector<DType> dtypes;     ///< That its kernels compute in; none: it does not say.
  bool pointwise = false;        ///< Whether it runs pointwise programs.
  uint64_t ops_printed = 0;      ///< Bit i: of programs, the operation TenonOp i.
  int32_t dlpack_type = 0;       ///< DLPack's number of the kind of device; 0: its tensors are not exchanged.
};

/// Throws Error{Device} for a device that load_device did not load.
DeviceClaims device_claims(Device device);

/// (free, total) bytes of a loaded device's memory; 0 where it does not say. Throws Error{Device} for a
/// device that load_device did not load.
std::pair<uint64_t, uint64_t> device_memory_info(Device device);

}  // namespace tenon
