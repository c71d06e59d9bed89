// The reference page of the workflow language.
#pragma once

#include <string>

namespace tally {

// The text of docs/reference.md: every element and key of the schema table, in the table's order.
std::string reference_markdown();

// Markdown; tests/acceptance/tutorial_test.py runs it.
extern const char* const kReferenceExamples;

// The JSON schema of workflow files in YAML, for editors and CI.

// Made from the schema table, as docs/reference.md. It is draft 07, which all editors know.
std::string workflow_json_schema();

}  // namespace tally
