// Checks of operations on memory that ranks map from each other (Communicator::map_peers()).
#pragma once

#include <functional>
#include <string>

#include "src/parallel/collectives/communicator.h"

// `check(good, what)` takes the outcome of each. Collective.
void check_peers(tally::train::Communicator& c, tally::train::Stream& s,
                 const std::function<void(bool, const std::string&)>& check);
