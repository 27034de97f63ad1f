// Library: how operators and kernels are registered: TENON_LIBRARY, TENON_LIBRARY_IMPL,
// TENON_LIBRARY_FRAGMENT. Used by authors of operators and backends, and by Tenon itself.
#pragma once

#if defined(TENON_ABI_PLUGIN_H)
#error \
    "tenon/abi/plugin.h is for plug-ins, this header for code that links Tenon: a file includes one of them"
#endif

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/dispatch/dispatcher.h"

namespace tenon {

/// Registers under one namespace and, in an implementation block, for one key. Its destructor removes
/// everything that it registered.
///
///     TENON_LIBRARY(myops, m) {
///       m.def("myadd(Tensor self, Tensor other) -> Tensor");
///       m.def("mysub(Tensor self, Tensor other) -> Tensor", &mysub);   // a catch-all kernel
///       m.def("mysign(Tensor self) -> Tensor", {Tag::pointwise});
///     }
///     TENON_LIBRARY_IMPL(myops, CPU, m) { m.impl("myadd", &myadd_cpu); }
class Library {
 public:
  enum class Kind : uint8_t { Def, Impl, Fragment };

  /// `ns` is a namespace, or "_" for an implementation block that registers fallbacks for all namespaces.
  /// `key` is empty or the name of a dispatch key. Throws Error{Value} for a bad key, and for a second Def
  /// block of one namespace.
  Library(Kind kind, std::string ns, std::string_view key, SourceLocation where);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Library(Library&& other) noexcept;
  ~Library();

  /// Declares an operator. Throws Error{Value} for a bad schema, and for an operator that is declared
  /// already.
  Library& def(std::string_view schema, SourceLocation where = SourceLocation::here());
  /// The same with tags, which throws Error{Value} for one that contradicts the schema: `inplace`, say, of
  /// what writes nothing.
  Library& def(std::string_view schema, Tags tags, SourceLocation where = SourceLocation::here());
  /// Declares an operator and registers a catch-all kernel. For a bare name, the schema is inferred from the
  /// function.
  Library& def(std::string_view schema_or_name, CppFunction f, SourceLocation where = SourceLocation::here());
  /// Registers a kernel for this block's key, or a catch-all one in a block without a key. The operator may
  /// be declared later. Throws Error{Type} when the kernel does not fit the schema.
  Library& impl(std::string_view name, CppFunction f, SourceLocation where = SourceLocation::here());
  /// Registers a kernel for a key other than the block's.
  Library& impl(std::string_view name, DispatchKey key, CppFunction f,
                SourceLocation where = SourceLocation::here());
  /// Registers the kernel that serves this block's key for every operator without one; namespace "_" only.
  Library& fallback(CppFunction f, SourceLocation where = SourceLocation::here());

  const std::string& ns() const noexcept { return ns_; }

 private:
  Kind kind_;
  std::string ns_;
  std::optional<DispatchKey> key_;
  SourceLocation where_;
  std::vector<uint64_t> registered_;
};

namespace detail {

/// Its address identifies a shared object: the symbol is hidden, so each shared object has its own.
[[gnu::visibility("hidden")]] inline const char kThisObject = 0;

/// A registration block of a source file. Its static initialiser, which neither allocates nor throws, puts it
/// on the list of waiting blocks; the next look-up commits it. Its destructor removes what it registered, so
/// that a library may be closed at any time.
struct LibraryBlock {
  using Init = void (*)(Library&);
  enum class State : uint8_t {
    Ignored,  ///< Of a second copy of Tenon.
    Waiting,
    Committing,
    Committed,
    Idle,  ///< Taken back, or failed.
  };

  LibraryBlock(Library::Kind kind, const char* ns, const char* key, Init init, const char* file, int line,
               const void* object = &kThisObject) noexcept;
  LibraryBlock(const LibraryBlock&) = delete;
  LibraryBlock& operator=(const LibraryBlock&) = delete;
  ~LibraryBlock();

  const Library::Kind kind;
  const char* const ns;
  const char* const key;
  const Init init;
  const SourceLocation where;
  const void* const object;         ///< Identifies the shared object that it is in.
  const ThreadState* const thread;  ///< Of the thread that loaded it.
  // The list's; library_block.cc.
  uint64_t id = 0;
  State state = State::Ignored;
  LibraryBlock* previous = nullptr;
  LibraryBlock* next = nullptr;
  Library* library = nullptr;  ///< While it is committed.

 private:
  LibraryBlock(const std::unique_lock<std::mutex>& list, Library::Kind kind, const char* ns, const char* key,
               Init init, SourceLocation where, const void* object) noexcept;
};

}  // namespace detail

/// Loads a shared library and commits its registrations. If that fails it throws and leaves every table
/// unchanged; a file that cannot be loaded is Error{Device}. A library loaded by dlopen is committed by the
/// next look-up instead, and its registrations go when dlclose unmaps it; no call into it may be running
/// then, and no graph may hold a node of one of its derivatives.
void load_library(const std::string& path);
/// Removes the registrations of a loaded library; loading it again restores them. The code of a library that
/// load_library loaded stays mapped.
void unload_library(const std::string& path);

}  // namespace tenon

#define TENON_CONCAT_(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_(a, b)
#define TENON_LIBRARY_BLOCK_(kind, ns, key, m, id)                                                         \
  static void TENON_CONCAT(tenon_library_init_, id)(::tenon::Library&);                                    \
  static ::tenon::detail::LibraryBlock TENON_CONCAT(tenon_library_block_, id)(                             \
      ::tenon::Library::Kind::kind, #ns, key, &TENON_CONCAT(tenon_library_init_, id), __FILE__, __LINE__); \
  static void TENON_CONCAT(tenon_library_init_, id)(::tenon::Library & m)

/// Declares the operators of a namespace; one block for each namespace.
#define TENON_LIBRARY(ns, m) TENON_LIBRARY_BLOCK_(Def, ns, "", m, __COUNTER__)
/// Declares further operators of a namespace.
#define TENON_LIBRARY_FRAGMENT(ns, m) TENON_LIBRARY_BLOCK_(Fragment, ns, "", m, __COUNTER__)
/// Registers kernels of a namespace for one key; namespace `_` registers fallbacks.
#define TENON_LIBRARY_IMPL(ns, key, m) TENON_LIBRARY_BLOCK_(Impl, ns, #key, m, __COUNTER__)
