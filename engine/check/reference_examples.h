// The examples at the end of the reference page.
#pragma once

namespace tally {

// Markdown; tests/acceptance/tutorial_test.py runs it.
extern const char* const kReferenceExamples;

}  // namespace tally
