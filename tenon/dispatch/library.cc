#include "tenon/dispatch/library.h"

#include <fmt/core.h>

#include <utility>

#include "tenon/core/error.h"
#include "tenon/dispatch/state.h"

namespace tenon {

Library::Library(Kind kind, std::string ns, std::string_view key, SourceLocation where)
    : kind_(kind), ns_(std::move(ns)), where_(where) {
  // Blocks that queued before this one was made come first: the newest registration of a slot runs.
  Dispatcher::singleton().commit_pending();
  TENON_CHECK(!ns_.empty() && ns_.find("::") == std::string::npos, Value,
              fmt::format("library: '{}' is not a namespace (at {})", ns_, to_string(where)));
  TENON_CHECK(
      ns_ != "_" || kind == Kind::Impl, Value,
      fmt::format("library: namespace _ declares nothing; use TENON_LIBRARY_IMPL (at {})", to_string(where)));
  if (!key.empty()) key_ = key_to_register(key);
  if (kind != Kind::Def) return;
  Dispatcher::State& state = Dispatcher::singleton().state();
  const std::lock_guard lock(state.mutex);
  const auto [first, inserted] = state.namespaces.emplace(ns_, where);
  TENON_CHECK(
      inserted, Value,
      fmt::format("library: namespace {} has a TENON_LIBRARY block at {} already; use TENON_LIBRARY_FRAGMENT "
                  "at {}",
                  ns_, to_string(first->second), to_string(where)));
}

Library::Library(Library&& other) noexcept
    : kind_(other.kind_),
      ns_(std::exchange(other.ns_, {})),
      key_(other.key_),
      where_(other.where_),
      registered_(std::exchange(other.registered_, {})) {}

Library::~Library() {
  if (ns_.empty()) return;  // moved from
  Dispatcher& dispatcher = Dispatcher::singleton();
  for (auto id = registered_.rbegin(); id != registered_.rend(); ++id) dispatcher.remove(*id);
  if (kind_ != Kind::Def) return;
  const std::lock_guard lock(dispatcher.state().mutex);
  dispatcher.state().namespaces.erase(ns_);
}

namespace {

/// The schema with this library's namespace.
schema::FunctionSchema in_namespace(schema::FunctionSchema schema, const std::string& ns,
                                    SourceLocation where) {
  TENON_CHECK(schema.ns.empty() || schema.ns == ns, Value,
              fmt::format("def: '{}' is not in this block's namespace {} (at {})", schema.full_name(), ns,
                          to_string(where)));
  schema.ns = ns;
  return schema;
}

schema::FunctionSchema parse_at(std::string_view text, SourceLocation where) {
  try {
    return schema::parse_schema(text);
  } catch (const Error& e) {
    throw_error(e.kind(), fmt::format("def at {}: {}", to_string(where), e.what()));
  }
}

}  // namespace

Library& Library::def(std::string_view schema, SourceLocation where) { return def(schema, Tags(), where); }

Library& Library::def(std::string_view schema, Tags tags, SourceLocation where) {
  TENON_CHECK(kind_ != Kind::Impl, Value,
              fmt::format("def: '{}' at {} is in a TENON_LIBRARY_IMPL block; declare it in TENON_LIBRARY or "
                          "TENON_LIBRARY_FRAGMENT",
                          schema, to_string(where)));
  registered_.reserve(registered_.size() + 1);
  registered_.push_back(Dispatcher::singleton().define(in_namespace(parse_at(schema, where), ns_, where),
                                                       where, Dispatcher::Listed::Yes, tags));
  return *this;
}

Library& Library::def(std::string_view schema_or_name, CppFunction f, SourceLocation where) {
  TENON_CHECK(kind_ != Kind::Impl, Value,
              fmt::format("def: '{}' at {} is in a TENON_LIBRARY_IMPL block; declare it in TENON_LIBRARY or "
                          "TENON_LIBRARY_FRAGMENT",
                          schema_or_name, to_string(where)));
  schema::FunctionSchema schema;
  if (schema_or_name.find('(') != std::string_view::npos) {
    schema = parse_at(schema_or_name, where);
  } else {
    TENON_CHECK(
        f.types(), Type,
        fmt::format("def: '{}' at {} needs a schema, because a boxed kernel has no types to infer one from",
                    schema_or_name, to_string(where)));
    const size_t scope = schema_or_name.find("::");
    const bool qualified = scope != std::string_view::npos;
    schema = infer_schema(qualified ? schema_or_name.substr(0, scope) : "",
                          qualified ? schema_or_name.substr(scope + 2) : schema_or_name, f.types()());
  }
  schema = in_namespace(std::move(schema), ns_, where);
  const std::string name = schema.ns + "::" + schema.name;
  const std::string overload = schema.overload;
  Dispatcher& dispatcher = Dispatcher::singleton();
  registered_.reserve(registered_.size() + 2);
  const uint64_t definition = dispatcher.define(std::move(schema), where);
  try {
    const uint64_t kernel = dispatcher.implement(name, overload, kCompositeImplicit, std::move(f), where);
    registered_.push_back(definition);
    registered_.push_back(kernel);
  } catch (...) {
    dispatcher.remove(definition);
    throw;
  }
  return *this;
}

Library& Library::impl(std::string_view name, CppFunction f, SourceLocation where) {
  return impl(name, key_.value_or(kCompositeImplicit), std::move(f), where);
}

Library& Library::impl(std::string_view name, DispatchKey key, CppFunction f, SourceLocation where) {
  TENON_CHECK(ns_ != "_", Value,
              fmt::format("impl: '{}' at {} needs a namespace; _ is for fallbacks", name, to_string(where)));
  const size_t scope = name.find("::");
  if (scope != std::string_view::npos) {
    TENON_CHECK(
        name.substr(0, scope) == ns_, Value,
        fmt::format("impl: '{}' is not in this block's namespace {} (at {})", name, ns_, to_string(where)));
    name.remove_prefix(scope + 2);
  }
  const size_t dot = name.find('.');
  const std::string_view overload = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  const std::string full = ns_ + "::" + std::string(name.substr(0, dot));
  TENON_CHECK(!name.substr(0, dot).empty() && name.find_first_of("( ") == std::string_view::npos, Value,
              fmt::format("impl: '{}' is not an operator's name (at {})", name, to_string(where)));
  registered_.reserve(registered_.size() + 1);
  registered_.push_back(Dispatcher::singleton().implement(full, overload, key, std::move(f), where));
  return *this;
}

Library& Library::fallback(CppFunction f, SourceLocation where) {
  TENON_CHECK(ns_ == "_" && key_, Value,
              fmt::format("fallback: at {}; it serves operators of every namespace, so it belongs in "
                          "TENON_LIBRARY_IMPL(_, KEY, m)",
                          to_string(where)));
  registered_.reserve(registered_.size() + 1);
  registered_.push_back(Dispatcher::singleton().fallback(*key_, std::move(f), where));
  return *this;
}

}  // namespace tenon
