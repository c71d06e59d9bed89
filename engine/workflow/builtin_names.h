// The names that every workflow may use without defining them, each with the phase in which it gets
// its value. Kinds of step add the names of StepKinds::value_names(); tables have those of
// table_names.h, too, and regular expressions those of pattern_uses.h (jube_pat_int).
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

enum class Builtin {
  benchmark_id,
  benchmark_padid,
  benchmark_name,
  benchmark_home,
  benchmark_rundir,
  benchmark_start,
  step_name,
  step_iterations,
  step_cycles,
  wp_id,
  wp_padid,
  wp_status,
  wp_iteration,
  wp_cycle,
  wp_relpath,
  wp_abspath,
  wp_parent_id,
  wp_envstr,
  wp_envlist,
};
enum class BuiltinPhase { run, step, workpackage };

struct BuiltinName {
  Builtin id;
  const char* name;  // wp_parent_id: with * in place of the parent step's name
  BuiltinPhase phase;
  ValueType type = ValueType::string;
};
// Every built-in name once, in the order of the enumeration.
std::span<const BuiltinName> builtin_names();
// The names themselves, for lists of what a name may be: all but wp_parent_id.
std::vector<std::string> fixed_builtin_names();
// Null for any other name.
const BuiltinName* find_builtin(std::string_view name);

// "jube_wp_parent_STEP_id"
std::string parent_id_name(std::string_view step);

// Whether a name, or any name in a text, differs between the workpackages of one point.
inline constexpr std::string_view kWorkpackagePrefix = "jube_wp_";
inline bool is_workpackage_name(std::string_view name) {
  return name.substr(0, kWorkpackagePrefix.size()) == kWorkpackagePrefix;
}
inline bool names_workpackage(std::string_view text) {
  return text.find(kWorkpackagePrefix) != std::string_view::npos;
}

// A name of tables alone: the analyser of the row.
inline constexpr const char* kAnalyserColumn = "jube_res_analyser";

// The names that the kinds of the benchmark's steps may add.
std::set<std::string_view> kind_names(const Benchmark& benchmark);

}  // namespace tally
