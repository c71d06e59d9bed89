// The parts of patterns that every workflow may use: $jube_pat_int and the like.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tally {

// The text of jube_pat_int, _fp, _wrd, _nint, _nfp, _nwrd and _bl. Null for any other name. In
// Tally's own files _fp and _nfp also match Fortran's exponents.
const std::string* pattern_building_block(std::string_view name, bool fortran);
std::vector<std::string> pattern_block_names();

}  // namespace tally
