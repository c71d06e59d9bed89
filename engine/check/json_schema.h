// The JSON schema of workflow files in YAML, for editors and CI.
#pragma once

#include <string>

namespace tally {

// Made from the schema table, as docs/reference.md. It is draft 07, which all editors know.
std::string workflow_json_schema();

}  // namespace tally
