// The parts of EndedFiles::packed() that are read without taking it apart.
#pragma once

#include <string_view>

namespace tally {

// EndedFiles::noted_ns. A file that was changed after that, whatever time it was given, may have
// other bytes. 0: nothing is packed.
long long files_noted_ns(std::string_view packed);

}  // namespace tally
