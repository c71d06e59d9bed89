// How long operations take on memory that ranks map from each other, and how long the library's.
#pragma once

#include "src/parallel/collectives/communicator.h"

// Rank 0 prints a table. Collective.
void time_peers(tally::train::Communicator& c, tally::train::Stream& s);
