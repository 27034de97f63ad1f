// Calls of a plug-in's kernels from a stack, and of operators by plug-ins. Used by this room alone.
#pragma once

#include "tenon/dispatch/kernel.h"
#include "tenon/plugin/device.h"

namespace tenon::plugin {

/// A kernel of a plug-in as the dispatcher takes it: boxed, for any operator. Where it declines, the operator
/// runs on host copies.
CppFunction kernel_of(const PluginDevice& device, TenonKernel kernel, void* data);

/// What a cell of a schema's type holds.
CellTag cell_tag_of(const schema::Type& type);

/// Fills in a stub with a function of a plug-in, which gets the stub's arguments as its cells. Throws
/// Error{Value} for a stub that does not exist, and Error{Type} for another signature than its own.
void set_stub(const std::string& stub, const std::string& signature, const PluginDevice& device,
              TenonKernel kernel, void* data);
/// Takes it back.
void remove_stub(const std::string& stub, Backend backend) noexcept;

}  // namespace tenon::plugin
