// tally: the workflow engine's command line.
#include "engine/cli/app.h"

int main(int argc, char** argv) {
  return tally::run_application(argc, argv);
}
