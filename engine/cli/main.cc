// tally: the command line of the workflow engine, with the kinds of steps that it knows.
#include "engine/cli/run_application.h"
#include "steps/kinds.h"

int main(int argc, char** argv) {
  return tally::run_application(argc, argv, tally::step_kinds());
}
