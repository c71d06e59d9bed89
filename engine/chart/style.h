// How series are told apart: by colour, and without colour by markers and dashes. Private to chart/.
#pragma once

#include <string>

namespace tally::chart {

// The colours of Okabe and Ito, which people with colour-blindness can tell apart. Dark ones first.
const char* color(size_t series);
// A value of stroke-dasharray. Empty: a line without gaps.
const char* dashes(size_t series);
// The path of a marker with its centre at (x, y).
std::string marker(size_t series, double x, double y);
// Attributes that draw a marker: filled, or its outline alone.
std::string marker_paint(size_t series);
// Attributes that fill a series' bars. Where the colours begin again, they are lighter.
std::string bar_paint(size_t series);

// A coordinate with at most two decimals: equal on every machine.
std::string coordinate(double value);

}  // namespace tally::chart
