// tally: the workflow engine's command line, given the kinds of step that it knows.
#include "engine/cli/app.h"
#include "steps/kinds.h"

int main(int argc, char** argv) {
  return tally::run_application(argc, argv, tally::step_kinds());
}
